#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Inlines the branch that a constant selects, and branches that are all the same. Computes both branches and selects,
/// where they are small and without effects. Selects by a pred where an index is a converted pred. A result that all
/// branches pass on from the same argument is read from outside, and results that nobody reads go.
/// Needs: no conditional shares its computations; those that do are left alone. Cost: linear. No errors.
Expected<Changed> simplify_conditionals(hlo::Module&);

}  // namespace hloom::passes
