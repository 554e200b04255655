// Run-time sizes of what devices exchange.
#pragma once

#include "passes/dynamic_rules.h"

namespace hloom::passes {

/// apply_sizes() of collectives. Sizes along which the arrays of a group must agree are the smallest that one of them has; a
/// size goes where its array goes, and a device that is sent nothing keeps its own. Errors: Unimplemented for other forms, and
/// where the dimension that is gathered or scattered along has a size.
Expected<Sized> apply_collective_sizes(Instruction&, const SizesOf& sizes_of);

}  // namespace hloom::passes
