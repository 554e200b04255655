// How near compiled values must be to the interpreter's, by opcode and type: docs/numerics.md as code.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "hlo/instruction.h"
#include "hlo/literal.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// Compares one result of `i` with what the interpreter gives for the same operands. Nothing if it is within what the
/// numeric contract allows; else what is wrong, with element and both values.
/// Errors: those of the interpreter (sums need their Σ|x|).
Expected<std::optional<std::string>> differs(const hlo::Instruction& i, std::span<const hlo::Literal> operands,
                                             const hlo::Literal& got, const hlo::Literal& want);

/// Steps that interpreting the instruction takes, roughly.
double interpreter_work(const hlo::Instruction& i);

}  // namespace hloom::compiler
