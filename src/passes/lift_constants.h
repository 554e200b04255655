// Constant arrays of fusions, given to them from outside.
#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes each constant array inside a fusion an operand of it: a kernel reads arrays from memory. What has one value for all
/// its elements stays, for a kernel makes that itself. Cost: linear. No errors.
Expected<Changed> lift_constants(hlo::Module&);

}  // namespace hloom::passes
