// Instructions that compute a box of what another computes, from boxes of its operands: how a dear one is checked.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/box.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// What the smaller instruction takes for an operand: a box of it, a value in its place, or else all of it.
struct SmallerOperand {
  std::optional<Box> box;
  std::optional<hlo::Literal> value;
};

struct Smaller {
  Box result;  ///< of the result, or of each array of the result: the box that was asked for, or one around it
  std::vector<SmallerOperand> operands;
  std::shared_ptr<hlo::Module> module;        ///< owns the instruction
  const hlo::Instruction* instruction = nullptr;  ///< calls computations of the other's module
};

/// The whole value of an operand, for opcodes whose operands say where others are read.
using WholeOperand = std::function<Expected<hlo::Literal>(std::int64_t operand)>;

/// Nothing where the opcode, dynamic dimensions or the order of a scatter's dimensions allow it only as a whole.
/// Needs: `box` lies in the result, all arrays of which have the same dimensions, and has elements; the module of `i` outlives the result.
/// Errors: those of `whole`. Cost: that of the parts, and for scatters the number of indices.
Expected<std::optional<Smaller>> smaller(const hlo::Instruction& i, const Box& box, const WholeOperand& whole);

}  // namespace hloom::compiler
