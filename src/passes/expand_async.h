#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Does at their start what is said to run beside the rest: the computation of an async-start stands in its place, a
/// copy in that of a copy-start; updates and dones are what was made there. Memory spaces of copies stay; a large copy from
/// one to another is noted to stay by itself (decisions["beside"]), so that it can begin before it is wanted.
/// Cost: linear. No errors.
Expected<Changed> expand_async(hlo::Module&);

}  // namespace hloom::passes
