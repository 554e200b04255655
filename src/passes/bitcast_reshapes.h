#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes each reshape of a row-major array a bitcast, which moves nothing. To be run after all that looks for reshapes.
/// Cost: linear. No errors.
Expected<Changed> bitcast_reshapes(hlo::Module&);

}  // namespace hloom::passes
