// Arrays with run-time sizes as callers have them: each as large as its sizes, not as its bounds.
#pragma once

#include <span>
#include <vector>

#include "hlo/literal.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// Whether some leaf has a dynamic dimension.
bool has_dynamic_leaf(std::span<const Shape> leaves);

/// `bound` with the sizes of an array of `dims` in its dynamic dimensions; the others must be the same.
/// Errors: InvalidArgument if the array does not fit.
Expected<Shape> sized(const Shape& bound, const std::vector<std::int64_t>& dims);

/// Puts arguments, each as large as it is, into arrays of the bounds and adds what the compiled program takes behind
/// all others: the sizes of each leaf of `parameters` (as the program was written) with dynamic dimensions.
/// Errors: InvalidArgument if an argument does not fit.
Expected<std::vector<hlo::Literal>> with_sizes(std::span<const Shape> parameters, std::vector<hlo::Literal> arguments);

/// Takes the sizes off again: results of `results` (as the program was written), each as large as its sizes say.
/// Needs: what the compiled program gave.
std::vector<hlo::Literal> without_sizes(std::span<const Shape> results, std::vector<hlo::Literal> values);

}  // namespace hloom::compiler
