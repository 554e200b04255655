#pragma once

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::passes {

/// That at each side of each fusion, nested ones too, the leaf outside and the one inside say the same memory space and
/// splits: whoever makes code of a fusion may read either.
/// Errors: FailedPrecondition, naming the fusion, the side and both places. Cost: linear.
Expected<> check_memory_spaces(const hlo::Module&);

}  // namespace hloom::passes
