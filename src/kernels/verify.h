// What must hold in a kernel.
#pragma once

#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Checks what emit/ and evaluate() rely on:
///   - each value is made once, before it is used, in a block that holds the use; values have the types that their
///     statements give (hlo-ops 4 and 5) and arguments ask for;
///   - only written arguments are stored to; indices made of constants and of loops with constant bounds stay inside
///     their argument, where no mask decides;
///   - loops by lanes and loops with a block keep the rules of kernel.h; each stores to a place of each lane's own.
/// Errors: InvalidArgument, naming kernel and value. Cost: linear.
Expected<> verify(const Kernel&);

/// The rule for one line alone: its operands' number, their types and the result's.
Expected<> verify_line(const Kernel&, const Line&);

}  // namespace hloom::kernels
