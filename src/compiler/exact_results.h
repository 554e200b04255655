// Which results of a program no order of summation and no bound of a function leaves open.
#pragma once

#include <span>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

struct ExactResults {
  /// By device: leaves of the result, as the interpreter has them.
  std::vector<std::vector<hlo::Literal>> values;
  std::vector<bool> exact;  ///< for each leaf: compiled code must give these very values, on each device
};

/// Interprets the program on `arguments` (by device, leaves of the parameters). A leaf is exact if nothing that it depends on is a
/// function with an error bound, a sum of floats that is not exact in every order, or what looks into a NaN's bits.
/// Errors: those of the interpreter, ResourceExhausted after `max_steps` instructions among them (0: any number).
Expected<ExactResults> exact_results(const hlo::Module&, std::span<const std::vector<hlo::Literal>> arguments,
                                     std::int64_t max_steps = 0);

}  // namespace hloom::compiler
