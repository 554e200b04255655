#include <algorithm>

#include "compiler/check_tolerance.h"
#include "compiler/smaller_plan.h"
#include "hlo/running_window.h"

namespace hloom::compiler {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::WindowDim;

namespace {

void take(Box& to, std::int64_t to_dim, const Box& from, std::int64_t from_dim) {
  to.start[static_cast<std::size_t>(to_dim)] = from.start[static_cast<std::size_t>(from_dim)];
  to.size[static_cast<std::size_t>(to_dim)] = from.size[static_cast<std::size_t>(from_dim)];
}

bool contains(const Dims& list, std::int64_t d) { return std::ranges::find(list, d) != list.end(); }

}  // namespace

// The result has the batch, then the free dimensions of the left, then those of the right.
SmallerPlan smaller_dot(const Instruction& i, const Box& box) {
  const auto& attr = i.attr<hlo::DotAttr>();
  SmallerPlan plan = plan_of(i, box);
  std::int64_t next = std::ssize(attr.lhs_batch);
  for (std::int64_t k = 0; k < 2; ++k) {
    const Shape& shape = i.operand(k)->shape();
    const Dims &batch = k == 0 ? attr.lhs_batch : attr.rhs_batch, &contracting = k == 0 ? attr.lhs_contracting : attr.rhs_contracting;
    Box& part = plan.operands[static_cast<std::size_t>(k)].box.emplace(whole_box(shape));
    for (std::int64_t b = 0; b < std::ssize(batch); ++b) take(part, batch[static_cast<std::size_t>(b)], box, b);
    for (std::int64_t d = 0; d < shape.rank(); ++d)
      if (!contains(batch, d) && !contains(contracting, d)) take(part, d, box, next++);
  }
  return plan;
}

namespace {

std::int64_t up(std::int64_t x, std::int64_t step) { return x <= 0 ? -(-x / step) : (x + step - 1) / step; }
std::int64_t down(std::int64_t x, std::int64_t step) { return -up(-x, step); }

// Dimension `from_dim` of the input that windows [start, start + size) of dimension `to_dim` read, and the windows as they then are.
WindowDim narrowed(WindowDim w, const Box& result, std::int64_t to_dim, Box& input, std::int64_t from_dim, std::int64_t dim) {
  const auto r = static_cast<std::size_t>(to_dim), k = static_cast<std::size_t>(from_dim);
  const std::int64_t lowest = result.start[r] * w.stride;
  const std::int64_t highest = lowest + (result.size[r] - 1) * w.stride + (w.size - 1) * w.rhs_dilate;
  const std::int64_t begin = std::clamp<std::int64_t>(up(lowest - w.pad_low, w.lhs_dilate), 0, dim);
  const std::int64_t end = std::clamp<std::int64_t>(down(highest - w.pad_low, w.lhs_dilate) + 1, begin, dim);
  input.start[k] = begin;
  input.size[k] = end - begin;
  w.pad_low += begin * w.lhs_dilate - lowest;
  w.pad_high = highest - lowest + 1 - w.pad_low - (end > begin ? (end - begin - 1) * w.lhs_dilate + 1 : 0);
  return w;
}

}  // namespace

// Features of a convolution in groups stay whole, as do the batches of one with groups of batches.
SmallerPlan smaller_convolution(const Instruction& i, const Box& wanted) {
  hlo::ConvolutionAttr small = i.attr<hlo::ConvolutionAttr>();
  const hlo::ConvolutionDims& d = small.dims;
  const bool grouped = small.feature_groups > 1 || small.batch_groups > 1;
  Box box = wanted;
  if (grouped) grow(box, i.shape(), d.output_feature);
  if (small.batch_groups > 1) grow(box, i.shape(), d.output_batch);
  SmallerPlan plan = plan_of(i, box);
  const Shape& input_shape = i.operand(0)->shape();
  Box& input = plan.operands[0].box.emplace(whole_box(input_shape));
  if (small.batch_groups == 1) take(input, d.input_batch, box, d.output_batch);
  if (!grouped) take(plan.operands[1].box.emplace(whole_box(i.operand(1)->shape())), d.kernel_output, box, d.output_feature);
  for (std::size_t s = 0; s < small.window.size(); ++s)
    small.window[s] = narrowed(small.window[s], box, d.output_spatial[s], input, d.input_spatial[s], input_shape.dim(d.input_spatial[s]));
  plan.adjust = [small](Instruction& copy) { copy.set_attributes(small); };
  return plan;
}

SmallerPlan smaller_reduce(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  for (std::size_t k = 0; k < plan.operands.size() / 2; ++k) {
    const Shape& shape = i.operands()[k]->shape();
    Box& part = plan.operands[k].box.emplace(whole_box(shape));
    std::int64_t next = 0;
    for (std::int64_t d = 0; d < shape.rank(); ++d)
      if (!contains(i.dimensions(), d)) take(part, d, box, next++);
  }
  return plan;
}

// Of cumulative windows all of a line, which takes no longer than its last.
MaybePlan smaller_reduce_window(const Instruction& i, const Box& wanted) {
  hlo::WindowAttr small = i.attr<hlo::WindowAttr>();
  const Shape& shape = i.operand(0)->shape();
  if (std::ssize(small.window) != shape.rank()) return std::nullopt;
  Box box = wanted;
  if (const auto running = hlo::running_window(i)) grow(box, first_array(i.shape()), running->dim);
  SmallerPlan plan = plan_of(i, box);
  Box part = box;
  for (std::int64_t d = 0; d < shape.rank(); ++d) {
    WindowDim& w = small.window[static_cast<std::size_t>(d)];
    w = narrowed(w, box, d, part, d, shape.dim(d));
  }
  for (std::size_t k = 0; k < plan.operands.size() / 2; ++k) plan.operands[k].box = part;
  plan.adjust = [small](Instruction& copy) { copy.set_attributes(small); };
  return plan;
}

// Dimensions in which windows are more than an element stay whole.
MaybePlan smaller_select_and_scatter(const Instruction& i, const Box& wanted) {
  const hlo::Window& window = i.attr<hlo::WindowAttr>().window;
  if (std::ssize(window) != i.shape().rank()) return std::nullopt;
  Box box = wanted, source = wanted;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    if (window[static_cast<std::size_t>(d)] == WindowDim()) continue;
    grow(box, i.shape(), d);
    grow(source, i.operand(1)->shape(), d);
  }
  SmallerPlan plan = plan_of(i, box);
  plan.operands[0].box = box;
  plan.operands[1].box = source;
  return plan;
}

}  // namespace hloom::compiler
