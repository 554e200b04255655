// The memory of a run, kept for the next one. Internal to runtime/.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/run_status.h"
#include "hloom/error.h"
#include "hloom/host_allocator.h"
#include "library/host_transfer.h"
#include "runtime/forks.h"
#include "runtime/graph_run.h"
#include "runtime/layout.h"
#include "runtime/threads.h"

namespace hloom::runtime {

/// A parameter's or result's bytes, for finding overlaps.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  std::int32_t port = 0;
};

/// A copy or call that goes on beside the steps.
struct StartedWork {
  Errand errand;
  const Operation* operation = nullptr;
  void* const* pointers = nullptr;
  bool under_way = false;
};

/// All that a run writes to apart from its results. Made for one program.
struct RunState {
  HostBuffer arena;
  HostBuffer host;  ///< memory space 2
  HostBuffer scratch;
  std::int32_t num_threads = 0;          ///< that the scratch is for
  std::vector<void*> pointers;           ///< Layout::table, resolved
  std::vector<std::byte*> ports;
  std::vector<std::int64_t> iterations;  ///< of each loop
  std::vector<Range> ranges;             ///< room to sort in
  std::unique_ptr<NodeState[]> nodes;    ///< of the graph that runs
  std::unique_ptr<StartedWork[]> started;  ///< by number
  std::vector<void*> room;               ///< for the pointers of a collective's folds
  base::RunStatus status;
  std::int64_t device = 0;
  const library::HostPort* host_port = nullptr;  ///< during a run that has one

  /// Of a call outside of graphs, for each of its workers.
  Scratch call_scratch(const Layout& layout, const Operation& o) const {
    if (o.scratch_stride == 0) return {};
    if (Layout::has_room(o, num_threads)) return room_of(o);
    return {scratch.data() + layout.forked_stride * num_threads, o.scratch_stride};
  }
  Scratch room_of(const Operation& o) const { return {static_cast<std::byte*>(pointers[o.room]), o.scratch_stride}; }
  /// Of a graph's nodes that have no room in the arena, for each of the pool's workers.
  Scratch graph_scratch(const Layout& layout, std::int64_t stride) const {
    if (stride == 0) return {};
    return {scratch.data() + layout.forked_stride * num_threads, stride};
  }
  Scratch forked_scratch(const Layout& layout) const {
    if (layout.forked_stride == 0) return {};
    return {scratch.data(), layout.forked_stride};
  }
};

/// The states of one program: a run has one to itself, and what it leaves the next run finds mapped and warm, so that
/// from the second run on no page faults and nothing is allocated. There are at most `most` at a time: who wants one
/// more waits until a run ends, unless it is itself within a run, of whatever program, which would then wait for itself.
/// Thread-safe.
class ProgramArena final : public SurvivesFork {
 public:
  /// `host_memory` gives the memory of space 2.
  ProgramArena(const Program& program, const Layout& layout, HostAllocator& allocator, HostAllocator& host_memory,
               std::int64_t most);
  ~ProgramArena();

  /// A state with scratch for the pool's threads, which touch a new arena first where they will write it.
  /// Errors: ResourceExhausted, with the owners of the arena's peak, if there is no memory for all of it; those of the
  /// hooks that map host memory.
  Expected<std::unique_ptr<RunState>> acquire(ThreadPool& pool, bool may_wait);
  /// Keeps the state for the next acquire(), or frees it if as many are kept as there are processors, or devices of the
  /// program.
  void release(std::unique_ptr<RunState>);
  /// Frees the states that are kept.
  void trim();
  std::int64_t num_kept();

 private:
  void before_fork() override;
  void after_fork(bool in_child) override;

  bool try_enter();
  void enter(bool may_wait);
  void leave();
  std::unique_ptr<RunState> take();
  Expected<std::unique_ptr<RunState>> get(ThreadPool& pool);
  Expected<std::unique_ptr<RunState>> make(ThreadPool& pool) const;
  Expected<HostBuffer> allocate(std::string_view what, std::int64_t size_bytes, std::int64_t alignment = 1) const;
  Expected<HostBuffer> map_host_memory() const;
  Expected<> touch(std::span<std::byte> arena, ThreadPool& pool) const;
  Error without_memory(std::string_view what, const Error&) const;

  const Program& program_;
  const Layout& layout_;
  HostAllocator& allocator_;
  HostAllocator& host_memory_;
  const std::int64_t most_;
  std::atomic<std::int64_t> running_ = 0;
  std::atomic<std::int64_t> waiting_ = 0;
  std::atomic<RunState*> first_ = nullptr;  ///< one kept state, owned; taken without the lock
  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> ended_;
  std::vector<std::unique_ptr<RunState>> others_;
};

}  // namespace hloom::runtime
