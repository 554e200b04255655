// The custom call by which exported programs check sizes.
#pragma once

#include "library/custom_call.h"

namespace hloom::library {

/// Operands: a pred, and integers that the message shows. If the pred is false the run ends with InvalidArgument and
/// CustomCallProblem::message, in which `{0}`, `{1}` … are the integers. No results.
/// Errors: InvalidArgument if operands or results are others.
Expected<RoutinePlan> plan_shape_assertion(const CustomCallProblem&);

}  // namespace hloom::library
