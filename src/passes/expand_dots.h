#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes a ragged-dot a loop over its groups: each takes a dot of all of lhs with the group's part of rhs and keeps its
/// rows, or one of what both sides have in the group. With a ragged batch it is one dot. Where a size is negative or the
/// sizes exceed the dimension, values are unspecified, but nothing is read outside.
/// Cost: linear. No errors.
Expected<Changed> expand_ragged_dot(hlo::Module&);

/// Makes a scaled-dot a dot of operands times their blocks' scales, in f64, where those products are exact.
/// Cost: linear. No errors.
Expected<Changed> expand_scaled_dot(hlo::Module&);

}  // namespace hloom::passes
