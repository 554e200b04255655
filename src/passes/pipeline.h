// The order in which a program is made simple.
#pragma once

#include <span>

#include "passes/run.h"

namespace hloom::passes {

/// The passes that are run in turn until none finds anything.
std::span<const Pass* const> standard();

/// clear-layouts, and the passes named expand-…, which leave nothing that has no compiled form but in parts; then
/// remove-markers and recognize-custom-calls; standard() to a fixed point, at most 8 rounds; then what
/// ends their work: remove-barriers, bitcast-reshapes, cse, remove-dead; run_placement(). After it: no calls, no layouts but row-major
/// ones inside, no reshape but of what is not row-major, loops with `trip_count` where it is known, and each while or
/// conditional with computations of its own. A scheduled module is only expanded and placed. Cost: linear. Errors: those of run().
Expected<Changed> run_standard(hlo::Module&, const RunOptions& = {});

/// separate-memory-spaces, then propagate-memory-space: at the end of run_standard(), and again once fusion has made
/// fusions. From here on each value lies in one place, and both sides of a fusion say which.
Expected<Changed> run_placement(hlo::Module&, const RunOptions& = {});

}  // namespace hloom::passes
