// What custom calls that are opcodes by another name say: for the interpreter, and for the pass that replaces them.
#pragma once

#include <cstdint>

#include "hlo/instruction.h"
#include "hloom/error.h"

namespace hloom::interp {

/// Whether a custom call TopK wants the largest elements: so it is without a comparator, and with one that compares by >.
/// Errors: Unimplemented, naming the instruction, for a comparator that does neither.
Expected<bool> takes_largest(const hlo::Instruction&);

/// The dimension of which a custom call ApproxTopK wants the first elements by its comparator. Its operands are N arrays, then
/// N scalars, which say what is there where nothing is; its results are the first elements of the N arrays, as many as the result has.
/// Errors: InvalidArgument, naming the instruction, if operands, results and comparator do not fit each other.
Expected<std::int64_t> approx_top_k_dimension(const hlo::Instruction&);

}  // namespace hloom::interp
