// Custom calls that say what an opcode says.
#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes `custom-call(x), custom_call_target="TopK"` the opcode topk, `ApproxTopK` a sort and slices, `ducc_fft` and
/// `dynamic_ducc_fft` the opcode fft (hlo-ops 15.2). Other custom calls stay. Cost: linear.
/// Errors: InvalidArgument, naming the call, if it is not made as its target asks, or says by a value that is not known what
/// it does; Unimplemented for a TopK by another order than < and >.
Expected<Changed> recognize_custom_calls(hlo::Module&);

}  // namespace hloom::passes
