// Makes what a kernel computes on the way visible.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace hloom::fusion {

/// Gives each fusion one more result for every instruction inside it whose value is an array, so that each can be looked
/// at after a run. Kernels of dots, convolutions, windows, scatters and routines keep their results: they would be
/// other kernels, and cumulative sums ones that take forever. The
/// results that were there keep their numbers.
void add_taps(hlo::Module&);

/// The instructions inside `fusion` that leaf `n` of its result is, in order; for a fusion with or without taps.
std::vector<const hlo::Instruction*> results_of(const hlo::Instruction& fusion);

}  // namespace hloom::fusion
