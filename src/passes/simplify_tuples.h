#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// An element of a tuple made here is what was put in; a tuple of all elements of another is that other. Cost: linear.
/// No errors.
Expected<Changed> simplify_tuples(hlo::Module&);

}  // namespace hloom::passes
