// A size that a program computed, held against its bounds.
#pragma once

#include "library/routine.h"

namespace hloom::library {

/// Operands: size, least, most, each one s32. The size becomes the result; one that is not in [least, most] ends the run
/// with InvalidArgument, and the result is then `least`.
RoutinePlan plan_check_size();

}  // namespace hloom::library
