// Run-time sizes of what convolves, normalizes, scatters, transforms and solves.
#pragma once

#include "passes/dynamic_rules.h"

namespace hloom::passes {

/// How many windows fit into a dimension of that size: hlo-ops 7.2 at run time.
Instruction* window_count(Make&, Instruction* size, const hlo::WindowDim&);

/// apply_sizes() of convolution, batch norms, scatter, select-and-scatter, fft, cholesky and triangular-solve. Errors: Unimplemented
/// for other opcodes, and where a size is of a dimension that has no rule.
Expected<Sized> apply_window_sizes(Instruction&, const SizesOf& sizes_of);

/// That there is no code for the instruction on arrays with run-time sizes.
Error no_dynamic_form(const Instruction&);

}  // namespace hloom::passes
