// Kernels run in plain C++: what they mean, statement by statement. The law of emit/ is that compiled code leaves the
// same memory, to the bit.
#pragma once

#include <cstdint>
#include <span>

#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

struct EvaluateOptions {
  bool check_bounds = true;             ///< an access outside of its argument is an error instead of undefined
  std::span<const Kernel> callees = {}; ///< where Call statements find their kernels, by name
};

/// Does blocks [begin, end) of the kernel's grid: a base::KernelFunction's arguments. A loop by lanes does each of its
/// statements for all lanes before the next; lanes of a load or store go one after the other.
/// Errors: OutOfRange, naming kernel and argument; NotFound if a callee is missing.
Expected<> evaluate(const Kernel&, void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch,
                    const EvaluateOptions& options = {});

}  // namespace hloom::kernels
