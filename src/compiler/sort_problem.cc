#include "compiler/sort_problem.h"

#include <algorithm>
#include <limits>

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

std::optional<library::SortProblem> sort_problem(const Instruction& i) {
  if (i.opcode() != Opcode::Sort && i.opcode() != Opcode::Topk) return std::nullopt;
  const bool top = i.opcode() == Opcode::Topk;
  const Shape& shape = i.operand(0)->shape();
  const std::int64_t along = top ? shape.rank() - 1 : i.dimension(0), n = shape.dim(along);
  if (n < library::kShortestSort || n > std::numeric_limits<std::uint32_t>::max() || shape.num_elements() == 0) return std::nullopt;
  const auto keys = hlo::sort_keys(i);
  if (!keys) return std::nullopt;
  library::SortProblem problem{n, top ? i.attr<hlo::TopKAttr>().k : n, shape.dims(), {}, {}, {}};
  problem.outer_dims.erase(problem.outer_dims.begin() + along);
  for (const hlo::SortKey& key : *keys) {
    const DType type = i.operand(key.operand)->shape().dtype();
    const std::optional<Order> order = order_of(type);
    if (!order) return std::nullopt;
    problem.keys.push_back({key.operand, *order, key.descending, key.zeros_equal, key.nans_equal, infinity_of(type)});
  }
  for (const Instruction* operand : i.operands()) {
    if (!is_plain(operand->shape())) return std::nullopt;
    problem.operands.push_back(array_of(operand->shape(), along));
  }
  for (const Shape* leaf : leaves(i.shape())) {
    if (!is_plain(*leaf)) return std::nullopt;
    problem.results.push_back(array_of(*leaf, along));
  }
  return problem;
}

}  // namespace hloom::compiler
