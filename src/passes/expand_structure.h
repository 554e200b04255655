#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Forwards domains, and makes constants of the numbers of replicas and partitions where there is one of them.
/// Cost: linear. No errors.
Expected<Changed> expand_structure(hlo::Module&);

}  // namespace hloom::passes
