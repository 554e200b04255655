// Custom calls that say what an opcode says.
#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes `custom-call(x), custom_call_target="TopK"` the opcode topk, which has the same meaning (hlo-ops 15.2). Other
/// custom calls stay. Cost: linear. No errors.
Expected<Changed> recognize_custom_calls(hlo::Module&);

}  // namespace hloom::passes
