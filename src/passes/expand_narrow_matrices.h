#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes cholesky and triangular-solve of types narrower than f32 those of f32, of which the result is rounded once.
/// Cost: linear. No errors.
Expected<Changed> expand_narrow_matrices(hlo::Module&);

}  // namespace hloom::passes
