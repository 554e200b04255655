#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Computes what depends on constants alone: elementwise ops through functions/, as compiled code would, and exact
/// movement and reductions of integers through interp/. What is larger than its operands stays (a broadcast is as good
/// as its scalar), iotas of a few elements count as constants. Stops after kMaxFoldedWork elements in a run; the next
/// goes on. Cost: linear in the elements. Errors: none; what the interpreter refuses stays.
Expected<Changed> fold_constants(hlo::Module&);

inline constexpr std::int64_t kMaxFoldedBytes = 1 << 20;    ///< of one result
inline constexpr std::int64_t kMaxFoldedWork = 1 << 23;     ///< elements computed in a run
inline constexpr std::int64_t kMaxUnfolded = 256;           ///< elements of an iota or broadcast that is written out

}  // namespace hloom::passes
