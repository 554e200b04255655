// How code that runs in a step puts a large kernel in the middle of its work onto all workers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/kernel_abi.h"
#include "runtime/threads.h"

namespace hloom::runtime {

/// Runs all blocks of `function` on the workers of the run that this thread is in, with `scratch_bytes` for each.
/// Compiled regions call it by address, under a name that emit/ declares. Outside a run, or in a parallel part of one,
/// the caller does all blocks. Needs: scratch_bytes at most Call::forked_scratch_bytes of the step; 0 outside a run.
void fork_join(base::KernelFunction function, void* const* buffers, std::int64_t blocks, std::int64_t scratch_bytes);

/// While it lives, fork_join() on this thread uses this pool and scratch.
class ForkJoinScope {
 public:
  ForkJoinScope(ThreadPool& pool, const Scratch& scratch);
  ~ForkJoinScope();
  ForkJoinScope(const ForkJoinScope&) = delete;
  ForkJoinScope& operator=(const ForkJoinScope&) = delete;

 private:
  friend void fork_join(base::KernelFunction, void* const*, std::int64_t, std::int64_t);
  ThreadPool& pool_;
  Scratch scratch_;
  ForkJoinScope* outer_;
};

}  // namespace hloom::runtime
