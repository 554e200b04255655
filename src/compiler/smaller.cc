#include "compiler/smaller.h"

#include <algorithm>

#include "base/try.h"
#include "compiler/smaller_plan.h"

namespace hloom::compiler {

using hlo::Instruction;
using hlo::Opcode;

SmallerPlan plan_of(const Instruction& i, const Box& box) {
  return {box, std::vector<SmallerOperand>(i.operands().size()), nullptr};
}

void grow(Box& box, const Shape& shape, std::int64_t dimension) {
  const auto d = static_cast<std::size_t>(dimension);
  box.start[d] = 0;
  box.size[d] = shape.dim(dimension);
}

const Shape& first_array(const Shape& result) { return result.is_tuple() ? result.element(0) : result; }

namespace {

bool has_dynamic(const Shape& shape) {
  return std::ranges::any_of(leaves(shape), [](const Shape* leaf) { return leaf->has_dynamic_dims(); });
}

// The same box of each operand; scalars beside arrays are whole.
SmallerPlan same_box(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  for (std::size_t k = 0; k < plan.operands.size(); ++k)
    if (i.operands()[k]->shape().dims().size() == box.size.size()) plan.operands[k].box = plan.result;
  return plan;
}

// Whole lines along `dimensions`; each operand has the box too, with all that it has of them.
SmallerPlan lines(const Instruction& i, Box box, const hlo::Dims& dimensions) {
  for (const std::int64_t d : dimensions) grow(box, first_array(i.shape()), d);
  SmallerPlan plan = plan_of(i, box);
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    plan.operands[k].box = box;
    for (const std::int64_t d : dimensions) grow(*plan.operands[k].box, i.operands()[k]->shape(), d);
  }
  return plan;
}

hlo::Dims last(const Shape& shape, std::int64_t count) {
  hlo::Dims result;
  for (std::int64_t d = shape.rank() - count; d < shape.rank(); ++d) result.push_back(d);
  return result;
}

SmallerPlan smaller_broadcast(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  Box& from = plan.operands[0].box.emplace();
  for (const std::int64_t d : i.dimensions()) {
    from.start.push_back(box.start[static_cast<std::size_t>(d)]);
    from.size.push_back(box.size[static_cast<std::size_t>(d)]);
  }
  return plan;
}

SmallerPlan smaller_transpose(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  Box& from = plan.operands[0].box.emplace(box);
  for (std::size_t d = 0; d < box.size.size(); ++d) {
    const auto to = static_cast<std::size_t>(i.dimensions()[d]);
    from.start[to] = box.start[d];
    from.size[to] = box.size[d];
  }
  return plan;
}

SmallerPlan smaller_iota(const Instruction& i, Box box) {
  grow(box, i.shape(), i.iota_dimension());
  return plan_of(i, box);
}

// The narrow side has a dimension more, its last, if the widths differ.
SmallerPlan smaller_bitcast_convert(const Instruction& i, Box box) {
  const Shape& from = i.operand(0)->shape();
  if (from.rank() == i.shape().rank()) return same_box(i, box);
  if (from.rank() < i.shape().rank()) grow(box, i.shape(), i.shape().rank() - 1);
  SmallerPlan plan = plan_of(i, box);
  Box& part = plan.operands[0].box.emplace(box);
  if (from.rank() < i.shape().rank()) {
    part.start.pop_back();
    part.size.pop_back();
  } else {
    part.start.push_back(0);
    part.size.push_back(from.dims().back());
  }
  return plan;
}

Expected<MaybePlan> plan_for(const Instruction& i, const Box& box, const WholeOperand& whole) {
  if (hlo::kind(i.opcode()) == hlo::OpcodeKind::Elementwise) return MaybePlan(same_box(i, box));
  switch (i.opcode()) {
    case Opcode::Copy: return MaybePlan(same_box(i, box));
    case Opcode::Broadcast: return MaybePlan(smaller_broadcast(i, box));
    case Opcode::Transpose: return MaybePlan(smaller_transpose(i, box));
    case Opcode::Iota: return MaybePlan(smaller_iota(i, box));
    case Opcode::BitcastConvert: return MaybePlan(smaller_bitcast_convert(i, box));
    case Opcode::Reshape:
    case Opcode::Bitcast: return smaller_bitcast(i, box);
    case Opcode::Concatenate: return MaybePlan(smaller_concatenate(i, box));
    case Opcode::Pad: return MaybePlan(smaller_pad(i, box));
    case Opcode::Slice: return MaybePlan(smaller_slice(i, box));
    case Opcode::Reverse: return MaybePlan(smaller_reverse(i, box));
    case Opcode::DynamicSlice: return smaller_dynamic_slice(i, box, whole);
    case Opcode::DynamicUpdateSlice: return smaller_dynamic_update_slice(i, box, whole);
    case Opcode::Gather: return MaybePlan(smaller_gather(i, box));
    case Opcode::Scatter: return smaller_scatter(i, box, whole);
    case Opcode::Dot: return MaybePlan(smaller_dot(i, box));
    case Opcode::Convolution: return MaybePlan(smaller_convolution(i, box));
    case Opcode::Reduce: return MaybePlan(smaller_reduce(i, box));
    case Opcode::ReduceWindow: return smaller_reduce_window(i, box);
    case Opcode::SelectAndScatter: return smaller_select_and_scatter(i, box);
    case Opcode::Sort: return MaybePlan(lines(i, box, i.dimensions()));
    case Opcode::Topk: return MaybePlan(lines(i, box, last(first_array(i.shape()), 1)));
    case Opcode::Fft: return MaybePlan(lines(i, box, last(i.shape(), std::ssize(i.attr<hlo::FftAttr>().length))));
    case Opcode::Cholesky:
    case Opcode::TriangularSolve: return MaybePlan(lines(i, box, last(i.shape(), 2)));
    default: return MaybePlan();
  }
}

Smaller made(const Instruction& i, SmallerPlan plan) {
  Smaller all{std::move(plan.result), std::move(plan.operands), std::make_shared<hlo::Module>("smaller"), nullptr};
  hlo::Computation* entry = all.module->add_computation("smaller");
  std::vector<Instruction*> operands;
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    const SmallerOperand& operand = all.operands[static_cast<std::size_t>(k)];
    const Shape& shape = i.operand(k)->shape();
    operands.push_back(entry->add_parameter(k, operand.value ? operand.value->shape()
                                               : operand.box ? resized(shape, operand.box->size)
                                                             : shape));
  }
  Instruction* copy = entry->add_clone(i, operands);
  copy->set_shape(resized(i.shape(), all.result.size));
  if (plan.adjust) plan.adjust(*copy);
  entry->set_root(copy);
  all.module->set_entry(entry);
  all.instruction = copy;
  return all;
}

}  // namespace

Expected<std::optional<Smaller>> smaller(const Instruction& i, const Box& box, const WholeOperand& whole) {
  bool dynamic = has_dynamic(i.shape());
  for (const Instruction* operand : i.operands()) dynamic = dynamic || has_dynamic(operand->shape());
  if (dynamic) return std::optional<Smaller>();
  MaybePlan plan = TRY(plan_for(i, box, whole));
  if (!plan) return std::optional<Smaller>();
  return std::optional(made(i, *std::move(plan)));
}

}  // namespace hloom::compiler
