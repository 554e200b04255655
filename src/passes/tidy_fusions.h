// Keeps the rules of fusions while passes rewrite what is inside.
#pragma once

#include "hlo/module.h"

namespace hloom::passes {

/// Removes from the computations of fusions what nothing uses, as their rules ask (H719), and operands that are not
/// read any more; gives each fusion a computation of its own, where a copied one shares it (H704).
/// Brings instructions and computations in order. Cost: linear.
void tidy_fusions(hlo::Module&);

}  // namespace hloom::passes
