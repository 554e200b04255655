#include "runtime/allocations_test.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count = 0;
}

// Sanitizers have an operator new of their own, which some linkers do not let a program replace.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HLOOM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HLOOM_SANITIZED 1
#endif
#endif

#ifndef HLOOM_SANITIZED
void* operator new(std::size_t size) {
  ++count;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace hloom::runtime {

std::int64_t num_allocations() { return count; }

}  // namespace hloom::runtime
