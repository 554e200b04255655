#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes all layouts row-major but those that bind: of the entry's parameters and result, of custom calls and bitcasts,
/// and of a copy that changes its operand's. A `copy` stands at each border with the rest. Memory spaces stay. Does
/// nothing to a scheduled module, whose layouts were chosen. Cost: linear. No errors.
Expected<Changed> clear_layouts(hlo::Module&);

}  // namespace hloom::passes
