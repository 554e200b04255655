// How near what a routine computes must be.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "hlo/instruction.h"
#include "hlo/literal.h"

namespace hloom::compiler {

/// Compares the result of an fft, cholesky or triangular-solve with what its operands ask for, in the measure in which its
/// error is bounded: a transform's, as a whole, with the interpreter's; a factor by its product, a solution by its
/// residual, each element in units of the sum of magnitudes that it is. Nothing if it is near enough, else what is wrong.
std::optional<std::string> differs_as_routine(const hlo::Instruction&, std::span<const hlo::Literal> operands,
                                              const hlo::Literal& got, const hlo::Literal& want);

}  // namespace hloom::compiler
