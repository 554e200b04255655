// The gradient of pooling.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// Adds the statements of a fusion whose root is a select-and-scatter: fills the result with the initial value, then for each
/// source element walks its window in row-major order and scatters to the position chosen (hlo-ops 7.3).
/// Errors: Unimplemented, naming an instruction that has no kernel.
Expected<> plan_select_and_scatter_into(Builder&, const hlo::Instruction& fusion, const Places&);

}  // namespace hloom::kernels
