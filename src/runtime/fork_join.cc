#include "runtime/fork_join.h"

#include "base/check.h"

namespace hloom::runtime {
namespace {

thread_local ForkJoinScope* current = nullptr;

}  // namespace

ForkJoinScope::ForkJoinScope(ThreadPool& pool, const Scratch& scratch)
    : pool_(pool), scratch_(scratch), outer_(current) {
  current = this;
}

ForkJoinScope::~ForkJoinScope() { current = outer_; }

void fork_join(base::KernelFunction function, void* const* buffers, std::int64_t blocks, std::int64_t scratch_bytes) {
  if (current == nullptr) {
    HLOOM_CHECK(scratch_bytes == 0);
    return function(buffers, 0, blocks, nullptr);
  }
  HLOOM_CHECK(scratch_bytes <= current->scratch_.stride_bytes);
  current->pool_.parallel_for_blocks(function, buffers, blocks, current->pool_.num_threads(), current->scratch_);
}

}  // namespace hloom::runtime
