#include "compiler/sort_problem.h"

#include <algorithm>
#include <limits>

#include "hlo/sort_form.h"
#include "hlo/sort_keys.h"
#include "kernels/builder.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Order = library::SortKey::Order;

bool is_plain(const Shape& shape) {
  return shape.has_layout() && shape.layout().is_plain() && bit_width(shape.dtype()) % 8 == 0;
}

std::optional<Order> order_of(DType type) {
  if (is_signed(type)) return Order::Signed;
  if (is_unsigned(type) || type == DType::Pred) return Order::Unsigned;
  const bool is_ieee = type == DType::F16 || type == DType::BF16 || type == DType::F32 || type == DType::F64;
  return is_ieee ? std::optional(Order::Float) : std::nullopt;
}

std::uint64_t infinity_of(DType type) {
  switch (type) {
    case DType::F16: return 0x7C00;
    case DType::BF16: return 0x7F80;
    case DType::F32: return 0x7F800000;
    default: return 0x7FF0000000000000;
  }
}

library::SortArray array_of(const Shape& shape, std::int64_t along) {
  std::vector<std::int64_t> strides = kernels::strides_of(shape);
  library::SortArray array{byte_width(shape.dtype()), strides[static_cast<std::size_t>(along)], std::move(strides)};
  array.outer_strides.erase(array.outer_strides.begin() + along);
  return array;
}

}  // namespace

std::optional<library::SortProblem> sort_problem(const Instruction& root) {
  const auto form = hlo::sort_form(root);
  if (!form) return std::nullopt;
  const Instruction& i = *form->sort;
  const Shape& shape = i.operand(0)->shape();
  const std::int64_t along = form->dimension, n = shape.dim(along);
  if (n < library::kShortestSort || n > std::numeric_limits<std::uint32_t>::max() || shape.num_elements() == 0) return std::nullopt;
  const auto keys = hlo::sort_keys(i);
  if (!keys) return std::nullopt;
  library::SortProblem problem{n, form->kept, shape.dims(), {}, {}, {}};
  problem.outer_dims.erase(problem.outer_dims.begin() + along);
  // The last of a line are the first of it backwards, in the order turned round: equal ones come in their order then.
  const bool turned = form->first > 0;
  for (const hlo::SortKey& key : *keys) {
    const DType type = i.operand(key.operand)->shape().dtype();
    const std::optional<Order> order = order_of(type);
    if (!order) return std::nullopt;
    problem.keys.push_back({key.operand, *order, key.descending != turned, key.zeros_equal, key.nans_equal, infinity_of(type)});
  }
  const auto add = [&](const Shape& array, std::int64_t source, std::vector<library::SortArray>& to) {
    to.push_back(array_of(array, along));
    to.back().source = source;
    if (!turned) return;
    to.back().start = (array.dim(along) - 1) * to.back().stride;
    to.back().stride = -to.back().stride;
  };
  for (const Instruction* operand : i.operands()) {
    if (!is_plain(operand->shape())) return std::nullopt;
    add(operand->shape(), 0, problem.operands);
  }
  std::size_t result = 0;
  for (const Shape* leaf : leaves(root.shape())) {
    if (!is_plain(*leaf)) return std::nullopt;
    add(*leaf, form->results[result++], problem.results);
  }
  return problem;
}

}  // namespace hloom::compiler
