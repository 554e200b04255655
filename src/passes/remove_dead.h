#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Removes instructions that neither the root nor a side effect needs, and computations that nothing calls. What a
/// removed instruction ordered through control edges stays ordered. Cost: linear. No errors.
Expected<Changed> remove_dead(hlo::Module&);

}  // namespace hloom::passes
