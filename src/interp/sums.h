// What reductions of all kinds share.
#pragma once

#include <vector>

#include "interp/ops.h"
#include "interp/scalar_function.h"

namespace hloom::interp {

/// Whether the function is a plain add of floats that is to be accumulated in f64.
bool is_float_sum(const ScalarFunction&, const Options&);
/// The array converted to that type; itself if it has it.
hlo::Literal as_type(const hlo::Literal&, DType);
/// The one literal, or a tuple of several (or none).
Value tuple_unless_one(std::vector<hlo::Literal> results);

}  // namespace hloom::interp
