#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes each scan a loop that takes a slice of each input, applies the computation, and writes the outputs' slices at
/// their places. Cost: linear. No errors.
Expected<Changed> expand_scan(hlo::Module&);

}  // namespace hloom::passes
