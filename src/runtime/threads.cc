#include "runtime/threads.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "base/check.h"
#include "runtime/cpus.h"
#include "runtime/float_mode.h"
#include "runtime/waiting.h"

// Each worker has two words of its own. The caller writes a new number to `command`; who sets its bit `taken` first does
// that part: the worker, or the caller, once it has done its own. So a worker that comes late holds up nobody, and what
// the caller took it needs not wait for. The worker writes the number of what it did to `done`. Who sends an errand sets
// `poked`, whatever the number; the worker sees that between two parts.

namespace hloom::runtime {
namespace {

constexpr std::uint32_t kTaken = 2, kPoked = 4, kNext = 8;
constexpr std::size_t kUsualErrands = 16;

thread_local int depth_of_work = 0;

}  // namespace

ThreadPool::Within::Within() { ++depth_of_work; }
ThreadPool::Within::~Within() { --depth_of_work; }
bool ThreadPool::is_within_work() { return depth_of_work > 0; }

struct ThreadPool::Slot {
  alignas(128) Word command = kTaken;
  alignas(128) Word done = 0;
  std::uint32_t last = 0;  ///< the caller's: number of the last part that the worker did
  bool mine = false;       ///< the caller's: it took the part
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(std::max(num_threads, 1)),
      spin_ns_(num_threads_ <= available_cpus() ? 30'000 : 0),
      slots_(new Slot[static_cast<std::size_t>(num_threads_)]) {
  threads_.reserve(static_cast<std::size_t>(num_threads_));
  errands_.reserve(kUsualErrands);
  start_surviving();
}

ThreadPool::ThreadPool(WorkerPool& theirs)
    : num_threads_(std::max(theirs.num_threads(), 1)), spin_ns_(0), theirs_(&theirs) {
  start_surviving();
}

ThreadPool::~ThreadPool() {
  HLOOM_CHECK(!busy_.exchange(true, std::memory_order_acquire));
  stop_surviving();
  stop_ = true;
  command_ += kNext;
  for (std::size_t i = 0; i < threads_.size(); ++i) tell(slots_[i + 1].command, command_);
  for (base::Thread& thread : threads_) thread.join();
}

// What a worker of the parent had begun is to be done again.
void ThreadPool::after_fork(bool in_child) {
  if (in_child)
    for (Errand* errand : errands_) errand->begun = false;
  errands_mutex_.unlock();
  if (!in_child) return;
  num_started_.store(0, std::memory_order_relaxed);
  for (base::Thread& thread : threads_) thread.forget();
  threads_.clear();
  if (theirs_ == nullptr) slots_.reset(new Slot[static_cast<std::size_t>(num_threads_)]);
  command_ = 0;
  busy_.store(false, std::memory_order_relaxed);
}

// Starts what is missing of `count` workers; the system may give fewer. Returns how many there are.
int ThreadPool::start_workers(int count) {
  while (static_cast<int>(threads_.size()) < count) {
    const int worker = static_cast<int>(threads_.size()) + 1;
    std::optional<base::Thread> thread = base::Thread::start("hloom-worker", [this, worker] { work(worker); });
    if (!thread) break;
    threads_.push_back(*std::move(thread));
    num_started_.store(worker, std::memory_order_release);
  }
  return std::min(static_cast<int>(threads_.size()), count);
}

void ThreadPool::work(int worker) {
  const DefaultFloatMode mode;
  const Within within;
  Slot& slot = slots_[static_cast<std::size_t>(worker)];
  for (std::uint32_t seen = kTaken;;) {
    std::uint32_t command = wait_until_changed(slot.command, seen, spin_ns_);
    if ((command & kPoked) != 0) {
      command = slot.command.fetch_and(~kPoked, std::memory_order_acq_rel) & ~kPoked;
      run_errands();
    }
    seen = command | kTaken;
    if (!take(slot, command)) continue;
    if (stop_) return;
    body_(context_, worker, workers_);
    tell(slot.done, command);
  }
}

// True if this thread is the one to do the part of that number.
bool ThreadPool::take(Slot& slot, std::uint32_t command) {
  if ((command & kTaken) != 0) return false;
  for (std::uint32_t found = command; (found & ~kPoked) == command;)
    if (slot.command.compare_exchange_weak(found, found | kTaken, std::memory_order_acq_rel)) return true;
  return false;
}

bool ThreadPool::take_errand(Errand*& errand) {
  const std::lock_guard<std::mutex> lock(errands_mutex_);
  const auto at = std::ranges::find(errands_, false, &Errand::begun);
  if (at == errands_.end()) return false;
  errand = *at;
  errand->begun = true;
  return true;
}

void ThreadPool::run_errands() {
  for (Errand* errand = nullptr; take_errand(errand);) {
    errand->function(errand->context);
    {
      const std::lock_guard<std::mutex> lock(errands_mutex_);
      std::erase(errands_, errand);
    }
    tell(errand->done, Errand::kDone);
  }
}

void ThreadPool::send(Errand& errand) {
  errand.begun = false;
  errand.done.store(0, std::memory_order_relaxed);
  if (num_threads_ == 1 || theirs_ != nullptr) {
    errand.function(errand.context);
    errand.done.store(Errand::kDone, std::memory_order_relaxed);
    return;
  }
  std::size_t before = 0;
  {
    const std::lock_guard<std::mutex> lock(errands_mutex_);
    before = errands_.size();
    errands_.push_back(&errand);
  }
  if (num_started_.load(std::memory_order_acquire) == 0) start_all();
  // The last worker first, which the caller's own parts wait for last.
  const auto others = static_cast<std::size_t>(num_threads_ - 1);
  poke(slots_[others - before % others].command, kPoked);
}

void ThreadPool::finish(Errand& errand) {
  if (errand.done.load(std::memory_order_acquire) == Errand::kDone) return;
  bool mine = false;
  {
    const std::lock_guard<std::mutex> lock(errands_mutex_);
    const auto at = std::ranges::find(errands_, &errand);
    mine = at != errands_.end() && !errand.begun;
    if (mine) errands_.erase(at);
  }
  if (mine) return errand.function(errand.context);
  wait_until_changed(errand.done, 0, spin_ns_);
}

bool ThreadPool::start_all() {
  if (theirs_ != nullptr) return true;
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  const bool all = start_workers(num_threads_ - 1) == num_threads_ - 1;
  busy_.store(false, std::memory_order_release);
  return all;
}

void ThreadPool::run(int workers, Body body, void* context) {
  workers = std::clamp(workers, 1, num_threads_);
  if (workers > 1 && theirs_ != nullptr) return run_on_theirs(workers, body, context);
  if (workers == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    for (int w = 0; w < workers; ++w) body(context, w, workers);
    return;
  }
  workers = start_workers(workers - 1) + 1;
  body_ = body;
  context_ = context;
  workers_ = workers;
  command_ += kNext;
  for (int w = 1; w < workers; ++w) tell(slots_[w].command, command_);
  body(context, 0, workers);
  for (int w = 1; w < workers; ++w) {
    slots_[w].mine = take(slots_[w], command_);
    if (slots_[w].mine) body(context, w, workers);
  }
  for (int w = 1; w < workers; ++w)
    if (Slot& slot = slots_[w]; !slot.mine) slot.last = wait_until_changed(slot.done, slot.last, spin_ns_);
  busy_.store(false, std::memory_order_release);
}

// Inside a part of theirs all parts are this thread's: a pool may not be made for more.
void ThreadPool::run_on_theirs(int workers, Body body, void* context) {
  static thread_local bool inside = false;
  if (inside) {
    for (int w = 0; w < workers; ++w) body(context, w, workers);
    return;
  }
  struct Work {
    Body body;
    void* context;
  } work{body, context};
  const WorkerPool::Body part = [](void* all, int w, int n) {
    const Work& of = *static_cast<const Work*>(all);
    const DefaultFloatMode mode;
    const Within within;
    inside = true;
    of.body(of.context, w, n);
    inside = false;
  };
  theirs_->run(workers, part, &work);
}

void ThreadPool::parallel_for_blocks(base::KernelFunction function, void* const* buffers, std::int64_t blocks,
                                     int workers, const Scratch& scratch, std::span<const std::int64_t> cuts) {
  if (blocks < workers) workers = static_cast<int>(blocks);
  if (workers <= 1) return function(buffers, 0, blocks, scratch.of(0));
  struct Work {
    base::KernelFunction function;
    void* const* buffers;
    std::int64_t blocks;
    Scratch scratch;
    std::span<const std::int64_t> cuts;
  } work{function, buffers, blocks, scratch, cuts};
  const Body body = [](void* context, int w, int n) {
    const Work& part = *static_cast<const Work*>(context);
    part.function(part.buffers, first_block(part.blocks, part.cuts, w, n),
                  first_block(part.blocks, part.cuts, w + 1, n), part.scratch.of(w));
  };
  run(workers, body, &work);
}

void ThreadPool::parallel_copy(std::byte* to, const std::byte* from, std::int64_t size_bytes) {
  constexpr std::int64_t kLine = 64;
  struct Work {
    std::byte* to;
    const std::byte* from;
    std::int64_t size_bytes;
  } work{to, from, size_bytes};
  const Body body = [](void* context, int w, int n) {
    const Work& all = *static_cast<const Work*>(context);
    const std::int64_t lines = (all.size_bytes + kLine - 1) / kLine;
    const std::int64_t begin = first_block(lines, w, n) * kLine;
    const std::int64_t end = std::min(first_block(lines, w + 1, n) * kLine, all.size_bytes);
    if (begin < end) std::memcpy(all.to + begin, all.from + begin, static_cast<std::size_t>(end - begin));
  };
  const std::int64_t workers = std::clamp<std::int64_t>(size_bytes / kCopyPart, 1, num_threads());
  run(static_cast<int>(workers), body, &work);
}

namespace {

// Workers of a pool that never ends are in our code to the end of the process: what it was loaded from must stay.
void stay_loaded() {
  Dl_info here;
  static const int inside = 0;
  if (dladdr(&inside, &here) != 0 && here.dli_fname != nullptr) dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

ThreadPool& process_pool() {
  // Left to the process's end: threads that still run then must find it.
  static ThreadPool& pool = []() -> ThreadPool& {
    stay_loaded();
    return *new ThreadPool(available_cpus());
  }();
  return pool;
}

}  // namespace hloom::runtime
