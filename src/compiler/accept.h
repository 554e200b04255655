// What the compiler takes on.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// Refuses what no stage after would notice and compile to wrong values: sizes without a bound, results in the
/// memory space of constants, more devices than a process has threads for.
/// Errors: Unimplemented or InvalidArgument, naming the instruction and the part. Cost: linear.
Expected<> accept(const hlo::Module&);

/// The same for tiled and sparse layouts, once those that bind nothing are cleared.
Expected<> accept_layouts(const hlo::Module&);

}  // namespace hloom::compiler
