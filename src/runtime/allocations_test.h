// Counts the test program's heap allocations.
#pragma once

#include <cstdint>

namespace hloom::runtime {

/// Calls of operator new so far; always 0 under a sanitizer.
std::int64_t num_allocations();

}  // namespace hloom::runtime
