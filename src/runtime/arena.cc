#include "runtime/arena.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/fail.h"
#include "base/try.h"
#include "runtime/commit.h"
#include "runtime/cpus.h"
#include "runtime/pages.h"

namespace hloom::runtime {

ProgramArena::ProgramArena(const Program& program, const Layout& layout, HostAllocator& allocator,
                           HostAllocator& host_memory, std::int64_t most)
    : program_(program),
      layout_(layout),
      allocator_(allocator),
      host_memory_(host_memory),
      most_(most),
      ended_(new std::condition_variable) {
  start_surviving();
}

ProgramArena::~ProgramArena() {
  stop_surviving();
  trim();
}

void ProgramArena::before_fork() { mutex_.lock(); }

// Runs of other threads do not go on in the child, and a condition that they wait for there cannot be destroyed.
void ProgramArena::after_fork(bool in_child) {
  if (in_child) {
    running_.store(0, std::memory_order_relaxed);
    waiting_.store(0, std::memory_order_relaxed);
    static_cast<void>(ended_.release());
    ended_.reset(new std::condition_variable);
  }
  mutex_.unlock();
}

bool ProgramArena::try_enter() {
  std::int64_t running = running_.load();
  while (running < most_)
    if (running_.compare_exchange_weak(running, running + 1)) return true;
  return false;
}

void ProgramArena::enter(bool may_wait) {
  if (try_enter()) return;
  if (!may_wait) {
    running_.fetch_add(1);
    return;
  }
  // A run that ends looks for who waits after it has left, so one of the two sees the other.
  std::unique_lock<std::mutex> lock(mutex_);
  waiting_.fetch_add(1);
  ended_->wait(lock, [this] { return try_enter(); });
  waiting_.fetch_sub(1);
}

void ProgramArena::leave() {
  running_.fetch_sub(1);
  if (waiting_.load() == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_->notify_one();
}

std::unique_ptr<RunState> ProgramArena::take() {
  std::unique_ptr<RunState> state(first_.exchange(nullptr, std::memory_order_acq_rel));
  if (state != nullptr) return state;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (others_.empty()) return nullptr;
  state = std::move(others_.back());
  others_.pop_back();
  return state;
}

Error ProgramArena::without_memory(std::string_view what, const Error& error) const {
  std::string message = program_.name + ": " + std::string(what) + ": " + error.message();
  if (!program_.arena_owners.empty()) message += "; the arena is at its peak owned by" + program_.arena_owners;
  return Error(Code::ResourceExhausted, std::move(message));
}

Expected<HostBuffer> ProgramArena::allocate(std::string_view what, std::int64_t size_bytes,
                                            std::int64_t alignment) const {
  if (size_bytes == 0) return HostBuffer();
  Expected<HostBuffer> memory = allocator_.allocate({.size_bytes = size_bytes, .alignment = alignment});
  if (!memory) return without_memory(what, memory.error());
  return memory;
}

Expected<HostBuffer> ProgramArena::map_host_memory() const {
  if (layout_.host_bytes == 0) return HostBuffer();
  Expected<HostBuffer> memory = host_memory_.allocate({.size_bytes = layout_.host_bytes, .alignment = kPage});
  if (!memory) return fail(memory.error().code(), program_.name, ": host memory: ", memory.error().message());
  if (const Expected<> done = populate(memory->bytes()); !done) return without_memory("host memory", done.error());
  return memory;
}

namespace {

// Where an array is split and there are several nodes, its parts lie on nodes one after the other.
void prefer_nodes(std::span<std::byte> arena, const TouchedSlice& slice) {
  const int nodes = num_memory_nodes(), parts = static_cast<int>(slice.cuts.size()) + 1;
  if (nodes == 1 || parts == 1) return;
  for (int p = 0; p < parts; ++p) {
    const std::int64_t begin = first_block(slice.size_bytes, slice.cuts, p, parts);
    const std::int64_t end = first_block(slice.size_bytes, slice.cuts, p + 1, parts);
    prefer_node(arena.subspan(static_cast<std::size_t>(slice.offset + begin), static_cast<std::size_t>(end - begin)),
                p * nodes / parts);
  }
}

}  // namespace

// Each worker touches the parts that it will write; what is left, the caller.
Expected<> ProgramArena::touch(std::span<std::byte> arena, ThreadPool& pool) const {
  constexpr std::size_t kMuch = std::size_t{1} << 20;  // with less it is not worth while to ask what is left
  if (arena.size() >= kMuch)
    if (const Expected<> room = check_room(arena); !room) return without_memory("arena", room.error());
  struct Work {
    std::span<std::byte> arena;
    std::span<const TouchedSlice> slices;
  } work{arena, layout_.touched};
  for (const TouchedSlice& slice : layout_.touched) prefer_nodes(arena, slice);
  const ThreadPool::Body body = [](void* context, int w, int n) {
    const Work& all = *static_cast<const Work*>(context);
    for (const TouchedSlice& slice : all.slices) {
      const std::int64_t begin = first_block(slice.size_bytes, slice.cuts, w, n),
                         end = first_block(slice.size_bytes, slice.cuts, w + 1, n);
      const auto part = all.arena.subspan(static_cast<std::size_t>(slice.offset + begin),
                                          static_cast<std::size_t>(end - begin));
      static_cast<void>(populate(part));  // what fails here fails below
    }
  };
  if (!layout_.touched.empty()) pool.run(pool.num_threads(), body, &work);
  if (const Expected<> done = populate(arena); !done) return without_memory("arena", done.error());
  return {};
}

Expected<std::unique_ptr<RunState>> ProgramArena::make(ThreadPool& pool) const {
  auto state = std::make_unique<RunState>();
  state->arena = TRY(allocate("arena", layout_.arena_bytes, layout_.arena_alignment));
  TRY(touch(state->arena.bytes(), pool));
  state->host = TRY(map_host_memory());
  state->ports.resize(program_.parameters.size() + program_.results.size());
  state->ranges.reserve(state->ports.size());
  if (layout_.most_nodes > 0) state->nodes.reset(new NodeState[layout_.most_nodes]);
  if (layout_.num_starts > 0) state->started.reset(new StartedWork[static_cast<std::size_t>(layout_.num_starts)]);
  state->iterations.resize(static_cast<std::size_t>(layout_.num_loops));
  for (const TableEntry& entry : layout_.table) {
    std::byte* base = entry.base == TableEntry::Base::Host ? state->host.data() : state->arena.data();
    if (entry.base == TableEntry::Base::Constant)
      base = const_cast<std::byte*>(program_.constants[static_cast<std::size_t>(entry.number)].data());
    if (entry.base == TableEntry::Base::Status) base = reinterpret_cast<std::byte*>(&state->status);
    if (entry.base == TableEntry::Base::Device) base = reinterpret_cast<std::byte*>(&state->device);
    if (entry.base == TableEntry::Base::HostPort) base = reinterpret_cast<std::byte*>(&state->host_port);
    state->pointers.push_back(entry.base == TableEntry::Base::Port ? nullptr : base + entry.offset);
  }
  return state;
}

Expected<std::unique_ptr<RunState>> ProgramArena::get(ThreadPool& pool) {
  std::unique_ptr<RunState> state = take();
  if (state == nullptr) state = TRY(make(pool));
  if (state->num_threads < pool.num_threads()) {
    state->scratch = TRY(allocate("scratch", layout_.scratch_bytes(pool.num_threads())));
    state->num_threads = pool.num_threads();
  }
  return state;
}

Expected<std::unique_ptr<RunState>> ProgramArena::acquire(ThreadPool& pool, bool may_wait) {
  enter(may_wait);
  Expected<std::unique_ptr<RunState>> state = get(pool);
  if (!state) leave();
  return state;
}

void ProgramArena::release(std::unique_ptr<RunState> state) {
  RunState* none = nullptr;
  if (first_.compare_exchange_strong(none, state.get(), std::memory_order_acq_rel)) {
    static_cast<void>(state.release());
  } else {
    const std::int64_t most = std::max<std::int64_t>(available_cpus(), num_devices(program_));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (static_cast<std::int64_t>(others_.size()) + 1 < most) others_.push_back(std::move(state));
  }
  leave();
}

void ProgramArena::trim() {
  const std::unique_ptr<RunState> first(first_.exchange(nullptr, std::memory_order_acq_rel));
  std::vector<std::unique_ptr<RunState>> others;
  const std::lock_guard<std::mutex> lock(mutex_);
  others.swap(others_);
}

std::int64_t ProgramArena::num_kept() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<std::int64_t>(others_.size()) + (first_.load(std::memory_order_acquire) != nullptr ? 1 : 0);
}

}  // namespace hloom::runtime
