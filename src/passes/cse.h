#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Lets all users of equal instructions of a computation use the first, and all that apply equal computations (in
/// reduce, sort, scatter, map …) apply the first; those of while, conditional and call stay apart. Leaves alone
/// side effects, what control edges order, optimization barriers and collectives. Cost: linear. No errors.
Expected<Changed> cse(hlo::Module&);

}  // namespace hloom::passes
