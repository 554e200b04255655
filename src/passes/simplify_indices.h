#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Decides comparisons, maxima, minima, clamps and remainders of integers by the ranges of their operands (ranges.h).
/// So the normalisation `select(i < 0, i + n, i)` of a loop's counter goes, and the checks of a scatter at one. Cost:
/// that of Ranges. No errors.
Expected<Changed> simplify_indices(hlo::Module&);

}  // namespace hloom::passes
