#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes buffers, b(…), the arrays that they hold: `Pin` and `Unpin` go, `CreateBuffer` is `AllocateBuffer` from here on. A buffer
/// has one writer at a time, so its value is that of an array that custom calls update in place. Cost: linear. No errors.
Expected<Changed> expand_buffers(hlo::Module&);

}  // namespace hloom::passes
