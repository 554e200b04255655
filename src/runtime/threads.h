// Threads that share the blocks of a kernel.
//
//   ThreadPool pool(4);                                   // the caller and three more, started when first needed
//   pool.parallel_for_blocks(kernel, buffers, 1000, 4, scratch);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/kernel_abi.h"
#include "base/thread.h"
#include "hloom/worker_pool.h"
#include "runtime/forks.h"
#include "runtime/waiting.h"

namespace hloom::runtime {

/// Below this many bytes a thread's wake costs more than its share of a copy.
inline constexpr std::int64_t kCopyPart = 256 << 10;

/// Memory for the workers of one run, worker w's at base + w·stride; null where nothing is needed.
struct Scratch {
  std::byte* base = nullptr;
  std::int64_t stride_bytes = 0;  ///< a multiple of 64
  std::byte* of(int worker) const { return base == nullptr ? nullptr : base + worker * stride_bytes; }
};

/// First block of worker `w` of `workers`; its last is before that of worker w + 1. The same counts give the same
/// parts, so that what a worker wrote is in its cache when it reads that part again.
inline std::int64_t first_block(std::int64_t blocks, int w, int workers) {
  return blocks / workers * w + blocks % workers * w / workers;  // the floor of blocks·w / workers, without overflow
}

/// The same for blocks in parts that begin at `cuts`: workers have as many parts each, so that with as many workers as parts
/// worker k has part k. Of the first half of a part the first block is that of the half.
inline std::int64_t first_block(std::int64_t blocks, std::span<const std::int64_t> cuts, int w, int workers) {
  if (cuts.empty()) return first_block(blocks, w, workers);
  const std::int64_t parts = std::ssize(cuts) + 1, at = w * parts / workers;
  const auto start = [&](std::int64_t part) {
    return part == 0 ? 0 : part >= parts ? blocks : cuts[static_cast<std::size_t>(part - 1)];
  };
  return start(at) + first_block(start(at + 1) - start(at), static_cast<int>(w * parts % workers), workers);
}

/// Work that goes on beside what its owner does. Stays where it is from send() until finish() has returned.
struct Errand {
  void (*function)(void* context) = nullptr;
  void* context = nullptr;
  Word done = 0;       ///< the pool's: kDone when it is
  bool begun = false;  ///< the pool's, under its lock
  static constexpr std::uint32_t kDone = 2;
};

/// A fixed number of workers, the calling thread among them. Workers wait for work by spinning for some 30 us, then
/// asleep. Any number of threads may call at once: who finds the workers taken, or is a worker, does all parts itself.
/// A caller that is done with its own part does those that no worker has begun. After fork() the child's pool starts
/// workers of its own.
class ThreadPool final : public SurvivesFork {
 public:
  /// `num_threads` counts the caller; at least 1. Starts no thread yet.
  explicit ThreadPool(int num_threads);
  /// The embedder's threads, which must outlive this. Starts none.
  explicit ThreadPool(WorkerPool& theirs);
  /// Waits for the workers' end. Needs: no call under way.
  ~ThreadPool();
  int num_threads() const { return num_threads_; }
  /// How long its threads look for work before they fall asleep.
  std::int64_t spin_ns() const { return spin_ns_; }

  /// Starts all threads, which run() else does when it needs them; false if the system has no more.
  bool start_all();

  /// One part of the work: part `worker` of `workers`.
  using Body = void (*)(void* context, int worker, int workers);
  /// Calls body(context, w, n) for each w in [0, n), n being at most `workers` and num_threads(); returns when all
  /// have. Part 0 runs on the caller, each of the others on a worker of its own, or on the caller behind its own part: if
  /// all threads are started, parts may wait for each other. Of the embedder's threads, and if the pool is busy, parts may
  /// run one after the other. Allocates nothing once the threads are started.
  void run(int workers, Body body, void* context);

  /// Calls function(buffers, from, to, scratch.of(w)) for parts that cover [0, blocks) once, at most `workers` of them.
  /// Where the blocks are in parts that begin at `cuts`, these are worker by worker (first_block()).
  void parallel_for_blocks(base::KernelFunction function, void* const* buffers, std::int64_t blocks, int workers,
                           const Scratch& scratch, std::span<const std::int64_t> cuts = {});

  /// Has a worker do it that has nothing else to do. Where the pool has no workers of its own it is done at once.
  void send(Errand&);
  /// Returns when it is done; does it if no worker has begun. Only for the thread that has sent it.
  void finish(Errand&);

  /// Marks this thread as doing a part of some work, as workers always do.
  class Within {
   public:
    Within();
    ~Within();
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;
  };
  static bool is_within_work();

  /// Copies with as many threads as get kCopyPart each. Needs: no overlap.
  void parallel_copy(std::byte* to, const std::byte* from, std::int64_t size_bytes);

 private:
  struct Slot;
  int start_workers(int count);
  void work(int worker);
  static bool take(Slot& slot, std::uint32_t command);
  void run_errands();
  bool take_errand(Errand*& errand);
  void run_on_theirs(int workers, Body body, void* context);
  void before_fork() override { errands_mutex_.lock(); }
  void after_fork(bool in_child) override;

  const int num_threads_;
  const std::int64_t spin_ns_;
  WorkerPool* const theirs_ = nullptr;
  std::unique_ptr<Slot[]> slots_;  ///< [w] is worker w's; [0] unused
  std::vector<base::Thread> threads_;
  std::atomic<bool> busy_ = false;  ///< held by whoever uses what follows
  std::uint32_t command_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
  int workers_ = 0;
  bool stop_ = false;
  std::atomic<int> num_started_ = 0;  ///< workers
  std::mutex errands_mutex_;
  std::vector<Errand*> errands_;      ///< sent, and not done
};

/// The pool of available_cpus() threads that everything in the process shares unless told otherwise. It never ends.
ThreadPool& process_pool();

}  // namespace hloom::runtime
