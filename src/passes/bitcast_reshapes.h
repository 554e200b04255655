#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes each reshape that moves nothing a bitcast: of a row-major array, or where only dimensions of one element come
/// and go. To be run after all that looks for reshapes.
/// Cost: linear. No errors.
Expected<Changed> bitcast_reshapes(hlo::Module&);

}  // namespace hloom::passes
