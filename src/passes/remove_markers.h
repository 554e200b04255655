#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Drops custom calls that only mark a value: shardings where there is one partition, layout and placement wishes.
/// Cost: linear. No errors.
Expected<Changed> remove_markers(hlo::Module&);

/// Drops optimization barriers, once nothing is to see through them any more. Cost: linear. No errors.
Expected<Changed> remove_barriers(hlo::Module&);

}  // namespace hloom::passes
