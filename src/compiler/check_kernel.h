// Machine code of kernels against the kernels run in plain C++.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::compiler {

/// A kernel whose code does not do what it says.
struct KernelDifference {
  std::string kernel;
  std::string message;  ///< argument, element, both values' bits
};

/// Compiles the kernels and runs each, for all of its blocks, on memory filled by `seed`; the evaluator does the same.
/// Floats are of both signs and modest, integers of 16 bits and more in [0, 8), for they may be indices. NaNs count as
/// equal. Kernels that others call are checked too, and run inside them.
/// Errors: InvalidArgument if a kernel does not verify; ResourceExhausted if its memory is 4 GiB or more; OutOfRange if
///         it leaves its arguments on this memory; those of the code generator.
Expected<std::vector<KernelDifference>> check_kernels(std::span<const kernels::Kernel>, std::uint64_t seed,
                                                     const std::string& cpu = {});

}  // namespace hloom::compiler
