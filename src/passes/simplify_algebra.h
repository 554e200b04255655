#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Simplifies elementwise arithmetic, logic, comparisons, conversions and selects where every bit stays the same (any
/// NaN of arithmetic is as good as another): x·1, x + -0, a float division by a power of two, select by a constant,
/// and(x, true), not of a comparison of integers, a conversion back … Combines splats as scalars: an op on spread
/// scalars is the spread op. Cost: linear. No errors.
Expected<Changed> simplify_algebra(hlo::Module&);

}  // namespace hloom::passes
