// Puts what passes appended into order.
#pragma once

#include "hlo/module.h"

namespace hloom::passes {

/// Sorts the computation if an operand or control predecessor stands after its user. Cost: linear, small if in order.
void restore_order(hlo::Computation&);
/// Sorts the computations that need it, and puts callees before callers.
void restore_order(hlo::Module&);

}  // namespace hloom::passes
