#include "passes/match.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "hlo/module.h"

namespace hloom::passes {

bool is_plain(const Shape& shape) {
  if (shape.is_tuple()) return std::ranges::all_of(shape.elements(), [](const Shape& e) { return is_plain(e); });
  if (!shape.is_array()) return true;
  return !shape.has_dynamic_dims() && shape.element_count() &&
         (!shape.has_layout() || (shape.layout().is_descending() && shape.layout().extra == nullptr));
}

bool is_plain(const Instruction& i) {
  return is_plain(i.shape()) &&
         std::ranges::all_of(i.operands(), [](const Instruction* o) { return is_plain(o->shape()); });
}

Instruction* splat_source(Instruction* i) {
  while (!i->shape().is_scalar()) {
    if (!is(i, Opcode::Broadcast) && !is(i, Opcode::Reshape)) return nullptr;
    i = i->operand(0);
  }
  return i;
}

std::optional<hlo::Literal> splat_constant(Instruction* i) {
  while (is(i, Opcode::Broadcast) || is(i, Opcode::Reshape)) i = i->operand(0);
  if (!is(i, Opcode::Constant) || !i->shape().is_array()) return std::nullopt;
  const hlo::Literal& literal = i->literal();
  if (literal.bytes().empty() || !hlo::is_splat(literal)) return std::nullopt;
  const auto width = static_cast<std::size_t>(byte_width(literal.dtype()));
  const auto first = literal.bytes().first(width);
  return hlo::Literal::from_bytes(Shape::scalar(literal.dtype()), {first.begin(), first.end()});
}

std::optional<std::int64_t> constant_integer(Instruction* i) {
  const DType type = i->shape().dtype();
  if (!is_integral(type) && type != DType::Pred) return std::nullopt;
  const auto splat = splat_constant(i);
  if (!splat) return std::nullopt;
  return hlo::element_as_int64(*splat, 0);
}

std::optional<double> constant_number(Instruction* i) {
  if (!i->shape().is_array() || is_complex(i->shape().dtype())) return std::nullopt;
  const auto splat = splat_constant(i);
  if (!splat) return std::nullopt;
  return hlo::element_as_double(*splat, 0);
}

bool is_number(Instruction* i, double value) {
  const auto number = constant_number(i);
  return number && *number == value && std::signbit(*number) == std::signbit(value);
}

bool is_all_ones(Instruction* i) {
  const DType type = i->shape().dtype();
  const auto number = constant_integer(i);
  if (!number) return false;
  if (is_signed(type)) return *number == -1;
  return static_cast<std::uint64_t>(*number) == ~std::uint64_t{0} >> (64 - bit_width(type));
}

std::optional<Opcode> simple_combiner(const hlo::Computation& computation) {
  const Instruction* root = computation.root();
  if (computation.parameters().size() != 2 || root->num_operands() != 2 || !hlo::is_elementwise(root->opcode()))
    return std::nullopt;
  const auto* a = computation.parameter(0);
  const auto* b = computation.parameter(1);
  const bool in_order = root->operand(0) == a && root->operand(1) == b;
  const bool swapped = root->operand(0) == b && root->operand(1) == a && is_commutative(*root);
  // A compare says more than its opcode.
  if ((!in_order && !swapped) || !root->attributes().empty() || !root->called().empty()) return std::nullopt;
  if (!(root->shape().dtype() == a->shape().dtype()) || !(a->shape().dtype() == b->shape().dtype()))
    return std::nullopt;
  return root->opcode();
}

bool returns_parameter(const hlo::Computation& computation, std::int64_t number) {
  const Instruction* root = computation.root();
  return root->opcode() == Opcode::Parameter && root->parameter_number() == number;
}

bool is_commutative(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Mulhi: return !is_complex(i.shape().dtype());
    case Opcode::Compare: {
      const auto direction = i.attr<hlo::CompareAttr>().direction;
      return direction == hlo::Direction::Eq || direction == hlo::Direction::Ne;
    }
    default: return false;
  }
}

Dims without_units(const Dims& dims) {
  Dims result;
  std::ranges::copy_if(dims, std::back_inserter(result), [](std::int64_t d) { return d != 1; });
  return result;
}

}  // namespace hloom::passes
