// The one C signature of generated kernels and library routines.
#pragma once

#include <cstdint>

namespace hloom::base {

/// A kernel or routine: does blocks [begin, end) of its grid.
/// `buffers`: one pointer for each declared argument, operands first, then results; each points at the
/// first byte of its slice. `scratch`: this worker's scratch of the size that the kernel declared, 64-byte
/// aligned, or null where it declared none. Two calls with disjoint ranges may run at the same time.
/// Compiled code never throws and never unwinds.
using KernelFunction = void (*)(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch);

}  // namespace hloom::base
