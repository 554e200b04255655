#include "hlo/reduce_order.h"

#include <algorithm>
#include <bit>

#include "hlo/identity.h"

namespace hloom::hlo {

namespace {

constexpr std::int64_t kShortest = 8;  // elements of a minor dimension that goes by lanes

// The opcode of a commutative binary op of `a` and `b`.
Opcode combining_op(const Instruction& result, const Instruction* a, const Instruction* b) {
  if (result.num_operands() != 2) return Opcode::Tuple;
  const bool straight = result.operand(0) == a && result.operand(1) == b;
  const bool crossed = result.operand(0) == b && result.operand(1) == a;
  if (!straight && !crossed) return Opcode::Tuple;
  switch (result.opcode()) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor: return result.opcode();
    default: return Opcode::Tuple;
  }
}

}  // namespace

Opcode reducer_op(const Computation& computation) {
  if (computation.parameters().size() != 2) return Opcode::Tuple;
  return combining_op(*computation.root(), computation.parameter(0), computation.parameter(1));
}

Opcode reducer_op(const Computation& computation, std::int64_t k) {
  const Instruction& root = *computation.root();
  const std::int64_t values = root.num_operands();
  if (root.opcode() != Opcode::Tuple || std::ssize(computation.parameters()) != 2 * values) return Opcode::Tuple;
  return combining_op(*root.operand(k), computation.parameter(k), computation.parameter(values + k));
}

Opcode reduce_op(const Instruction& reduce) {
  if (reduce.num_operands() != 2) return Opcode::Tuple;
  const DType type = reduce.operand(0)->shape().dtype();
  if (reduce.shape().dtype() != type || reduce.operand(1)->shape().dtype() != type) return Opcode::Tuple;
  return reducer_op(*reduce.to_apply());
}

DType accumulator(Opcode combine, DType type) {
  return combine == Opcode::Add && is_floating(type) && bit_width(type) < 32 ? DType::F32 : type;
}

int ReduceOrder::lanes() const {
  const auto enough = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1)));
  return static_cast<int>(std::min<std::int64_t>(kFoldLanes, static_cast<std::int64_t>(enough)));
}

ReduceOrder order_of(const Instruction& reduce) {
  const Opcode op = reduce_op(reduce);
  if (op == Opcode::Tuple || !has_identity(op, accumulator(op, reduce.operand(0)->shape().dtype()))) return {};
  return minor_order(reduce);
}

ReduceOrder minor_order(const Instruction& reduce) {
  ReduceOrder order;
  const Shape& shape = reduce.operand(0)->shape();
  const auto reduced = [&](std::int64_t d) {
    return std::ranges::find(reduce.dimensions(), d) != reduce.dimensions().end();
  };
  const std::int64_t last = shape.rank() - 1;
  if (last < 0 || !reduced(last) || shape.dim(last) < kShortest || shape.num_elements() == 0) return order;
  order.by_lanes = true;
  order.first = last;
  order.extent = shape.dim(last);
  // Dimensions before a short one go with it.
  while (order.first > 0 && reduced(order.first - 1) && order.extent < kFoldLanes) order.extent *= shape.dim(--order.first);
  return order;
}

}  // namespace hloom::hlo
