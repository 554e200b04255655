#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Finds how often loops run. One that never runs gives what went in, one that runs once is inlined, and a counter's
/// value after the loop is a constant. Writes the decision `trip_count` on a while whose number of iterations is known,
/// and `trip_limit` on one of which a most is. Cost: linear. No errors.
Expected<Changed> simplify_loops(hlo::Module&);

}  // namespace hloom::passes
