#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes arrays with run-time sizes arrays of their bounds, with an s32 for each dynamic dimension beside, and masks
/// where something past a size would count. After it no shape is dynamic.
///
/// At the border of the program sizes are further leaves: each parameter leaf with dynamic dimensions has one more
/// parameter at the end, s32[k] with the sizes of its k dynamic dimensions in order, and each such result leaf one more
/// result behind all others. What lies past the sizes of a result is zero; of an argument it does not matter. A size that
/// is negative or larger than its bound ends the run with an error.
/// Cost: linear. Errors: Unimplemented, naming the instruction, for what is not done on such arrays.
Expected<Changed> expand_dynamic_sizes(hlo::Module&);

}  // namespace hloom::passes
