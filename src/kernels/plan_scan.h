// Running sums: windows that hold all elements up to their own.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// The dimension along which an instruction is a running fold with a result for each element (hlo/running_window.h); -1 if it is none.
std::int64_t scan_dimension(const hlo::Instruction&);

/// Adds the loops of a fusion whose root is such a reduce-window: one step an element, in the order of the windows
/// (first to last; last to first where the padding is behind), by any reducer. Lines go by lanes, or a few side by side, and the outermost
/// loop over them is shared out to about `blocks`. Errors: Unimplemented, naming an instruction.
Expected<> plan_scan_into(Builder&, const hlo::Instruction& fusion, const Places&, std::int64_t blocks);

}  // namespace hloom::kernels
