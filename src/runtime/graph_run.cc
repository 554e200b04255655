#include "runtime/graph_run.h"

#include <algorithm>
#include <cstring>

#include "base/run_status.h"
#include "runtime/arena.h"

namespace hloom::runtime {
namespace {

constexpr std::int64_t kLine = 64;  // parts of a copy are whole lines

void copy_part(void* const* pointers, std::int64_t size_bytes, int part, int parts) {
  const std::int64_t lines = (size_bytes + kLine - 1) / kLine;
  const std::int64_t begin = first_block(lines, part, parts) * kLine;
  const std::int64_t end = std::min(first_block(lines, part + 1, parts) * kLine, size_bytes);
  if (begin < end)
    std::memcpy(static_cast<std::byte*>(pointers[1]) + begin, static_cast<const std::byte*>(pointers[0]) + begin,
                static_cast<std::size_t>(end - begin));
}

}  // namespace

GraphRun::GraphRun(const Layout& layout, const Graph& graph, RunState& state, const CancelToken* cancel)
    : layout_(layout), graph_(graph), state_(state), cancel_(cancel), nodes_(state.nodes.get()) {}

void GraphRun::run(ThreadPool& pool) {
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    NodeState& node = nodes_[i];
    node.parts = std::min({graph_.nodes[i].parts, pool.num_threads(), 64});
    node.waits_for.store(graph_.nodes[i].waits_for, std::memory_order_relaxed);
    node.unfinished.store(node.parts, std::memory_order_relaxed);
    node.taken.store(0, std::memory_order_relaxed);
  }
  scratch_stride_ = layout_.scratch_stride(graph_, state_.num_threads);
  spin_ns_ = pool.spin_ns();
  pool.run(pool.num_threads(), [](void* self, int worker, int) { static_cast<GraphRun*>(self)->work(worker); }, this);
}

const Operation* GraphRun::failed() const { return failed_.load(std::memory_order_acquire); }

void GraphRun::work(int worker) {
  for (;;) {
    // First: what happens from here on changes it, so that the wait below ends.
    const std::uint32_t seen = events_.load(std::memory_order_acquire) & ~kAsleep;
    if (has_stopped()) return;
    if (const Part part = find(worker); part.number >= 0) {
      execute(part, worker);
      finish(part);
    } else if (done_.load(std::memory_order_acquire) == graph_.nodes.size()) {
      return;
    } else {
      wait_with_others(events_, seen, spin_ns_);
    }
  }
}

bool GraphRun::has_stopped() {
  if (cancel_ != nullptr && cancel_->is_cancelled() && !stopped_.exchange(true)) tell_all(events_);
  return stopped_.load(std::memory_order_acquire);
}

bool GraphRun::is_ready(std::size_t node) const {
  return nodes_[node].waits_for.load(std::memory_order_acquire) == 0;
}

bool GraphRun::take(std::size_t node, std::int32_t part) {
  const std::uint64_t bit = std::uint64_t{1} << part;
  std::atomic<std::uint64_t>& taken = nodes_[node].taken;
  if ((taken.load(std::memory_order_relaxed) & bit) != 0) return false;
  return (taken.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

GraphRun::Part GraphRun::find(int worker) {
  const std::size_t count = graph_.nodes.size();
  for (std::size_t node = 0; node < count; ++node)
    if (const std::int32_t own = worker % nodes_[node].parts; is_ready(node) && take(node, own)) return {node, own};
  for (std::size_t node = 0; node < count; ++node) {
    if (!is_ready(node)) continue;
    for (std::int32_t part = 0; part < nodes_[node].parts; ++part)
      if (take(node, part)) return {node, part};
  }
  return {};
}

void GraphRun::execute(const Part& part, int worker) {
  const Operation& operation = layout_.operations[graph_.nodes[part.node].operation];
  void* const* const pointers = state_.pointers.data() + operation.pointer;
  const int parts = nodes_[part.node].parts;
  if (operation.kind == Operation::Kind::Copy) return copy_part(pointers, operation.count, part.number, parts);
  // Room in the arena is the node's, of which each part is at work once; the rest is the workers'.
  const bool has_room = operation.scratch_stride > 0 && Layout::has_room(operation, state_.num_threads);
  std::byte* const scratch = has_room ? state_.room_of(operation).of(part.number)
                                      : state_.graph_scratch(layout_, scratch_stride_).of(worker);
  operation.function(pointers, first_block(operation.count, operation.cuts, part.number, parts),
                     first_block(operation.count, operation.cuts, part.number + 1, parts), scratch);
}

void GraphRun::finish(const Part& part) {
  if (nodes_[part.node].unfinished.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const GraphNode& node = graph_.nodes[part.node];
  if (node.checked && base::has_failed(state_.status)) {
    failed_.store(&layout_.operations[node.operation], std::memory_order_release);
    stopped_.store(true, std::memory_order_release);
    return tell_all(events_);  // what waits for it is not begun
  }
  for (std::uint32_t n = 0; n < node.num_next; ++n)
    nodes_[graph_.next[node.first_next + n]].waits_for.fetch_sub(1, std::memory_order_acq_rel);
  done_.fetch_add(1, std::memory_order_acq_rel);
  tell_all(events_);
}

}  // namespace hloom::runtime
