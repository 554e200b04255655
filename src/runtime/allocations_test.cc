#include "runtime/allocations_test.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count = 0;
}

void* operator new(std::size_t size) {
  ++count;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace hloom::runtime {

std::int64_t num_allocations() { return count; }

}  // namespace hloom::runtime
