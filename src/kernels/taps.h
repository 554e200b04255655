// Windows of a few elements, which are gone through tap by tap without a loop: then each tap's place is known, boxes can be cut
// where it leaves the array, and neighbours share what they read.
#pragma once

#include "hlo/module.h"

namespace hloom::kernels {

/// Whether a reduce-window, or a convolution that is no dot, goes tap by tap: few of them, over a result that is worth the code.
bool goes_by_taps(const hlo::Instruction&);

/// The instruction of a fused computation that goes so and has these dimensions; null if there is none.
const hlo::Instruction* find_taps(const hlo::Computation&, const hlo::Dims& dims);

/// Whether neighbours along a dimension of the result have elements of their windows in common. Needs: goes_by_taps().
bool shares_taps(const hlo::Instruction&, std::int64_t dimension);

}  // namespace hloom::kernels
