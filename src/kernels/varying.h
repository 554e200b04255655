// Which values differ from lane to lane.
#pragma once

#include <vector>

#include "kernels/kernel.h"

namespace hloom::kernels {

/// For each value of the kernel: whether it is made inside `loop`, a loop by lanes, and may differ from lane to lane:
/// what depends on the loop's variable, on its folds or on anything that does. The rest is computed once for all
/// lanes. Cost: linear, times the nesting of loops with carries.
std::vector<bool> varying_values(const Kernel&, const Loop& loop);

}  // namespace hloom::kernels
