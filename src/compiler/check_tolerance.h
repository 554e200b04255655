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

/// Whether the contract bounds the instruction's results instead of fixing them, whatever its operands: functions,
/// factorizations, transforms; also what applies such a computation to elements.
bool is_bounded(const hlo::Instruction& i);
/// Whether it adds or multiplies many elements in an order of its own.
bool is_sum(const hlo::Instruction& i);
/// Whether a sum of these operands is exact in any order: all elements are integers, and the sum of their magnitudes
/// is one that the type holds exactly. Needs: is_sum(i). Errors: those of the interpreter.
Expected<bool> sums_exactly(const hlo::Instruction& i, std::span<const hlo::Literal> operands);

/// Steps that interpreting the instruction takes, roughly.
double interpreter_work(const hlo::Instruction& i);

}  // namespace hloom::compiler
