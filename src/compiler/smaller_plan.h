// How one instruction is made smaller: families of opcodes, one function each.
#pragma once

#include "compiler/smaller.h"

namespace hloom::compiler {

/// The boxes and values of a Smaller, and what changes in the attributes of the copy.
struct SmallerPlan {
  Box result;
  std::vector<SmallerOperand> operands;
  std::function<void(hlo::Instruction&)> adjust;
};
using MaybePlan = std::optional<SmallerPlan>;

/// A plan whose operands are whole. Needs: `box` as of smaller().
SmallerPlan plan_of(const hlo::Instruction& i, const Box& box);
/// Lets the box have all of a dimension. Needs: `shape` is the array's.
void grow(Box& box, const Shape& shape, std::int64_t dimension);
/// The first array of a result.
const Shape& first_array(const Shape& result);

// smaller_movement.cc
SmallerPlan smaller_concatenate(const hlo::Instruction&, const Box&);
SmallerPlan smaller_pad(const hlo::Instruction&, const Box&);
SmallerPlan smaller_slice(const hlo::Instruction&, const Box&);
SmallerPlan smaller_reverse(const hlo::Instruction&, const Box&);
MaybePlan smaller_bitcast(const hlo::Instruction&, const Box&);  ///< and reshape
Expected<MaybePlan> smaller_dynamic_slice(const hlo::Instruction&, const Box&, const WholeOperand&);
Expected<MaybePlan> smaller_dynamic_update_slice(const hlo::Instruction&, const Box&, const WholeOperand&);
SmallerPlan smaller_gather(const hlo::Instruction&, const Box&);
Expected<MaybePlan> smaller_scatter(const hlo::Instruction&, const Box&, const WholeOperand&);

// smaller_sums.cc
SmallerPlan smaller_dot(const hlo::Instruction&, const Box&);
SmallerPlan smaller_convolution(const hlo::Instruction&, const Box&);
SmallerPlan smaller_reduce(const hlo::Instruction&, const Box&);
MaybePlan smaller_reduce_window(const hlo::Instruction&, const Box&);
MaybePlan smaller_select_and_scatter(const hlo::Instruction&, const Box&);

}  // namespace hloom::compiler
