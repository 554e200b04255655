// Convolutions that the library's routine does.
#pragma once

#include "hlo/module.h"
#include "library/convolution.h"

namespace hloom::compiler {

/// Whether the routine does it: a convolution of f32 or f64 that hardly ever runs. Its input may be a slice of
/// what the routine is given.
bool is_rare_convolution(const hlo::Instruction&);

/// Needs: is_rare_convolution(); arrays with dense layouts.
library::ConvolutionProblem convolution_problem(const hlo::Instruction&);

}  // namespace hloom::compiler
