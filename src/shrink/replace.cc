// Something simple in the place of an instruction.
#include <algorithm>
#include <cstring>

#include "hlo/narrow_float.h"
#include "shrink/step.h"

namespace hloom::shrink {
namespace {

void write_number(DType type, std::int64_t value, std::span<std::byte> to) {
  const DType part = real_type(type);
  std::uint64_t bits = static_cast<std::uint64_t>(value);
  if (part == DType::Pred) bits = value != 0 ? 1 : 0;
  if (is_unsigned(part) && bit_width(part) < 8) bits &= (std::uint64_t{1} << bit_width(part)) - 1;
  if (part == DType::F64) {
    const double number = static_cast<double>(value);
    std::memcpy(&bits, &number, sizeof(bits));
  } else if (is_floating(part)) {
    bits = hlo::encode_float(hlo::float_format(part), static_cast<double>(value));
  }
  std::memcpy(to.data(), &bits, static_cast<std::size_t>(byte_width(part)));
}

bool is_simple(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement: return true;
    case Opcode::Broadcast: return i.operand(0)->opcode() == Opcode::Constant && i.operand(0)->shape().is_scalar();
    default: return false;
  }
}

Step by_operand(const std::string& name, std::int64_t k) {
  return {name + " is its operand", [name, k](Program& p) {
            Instruction* i = find(*p.module, name);
            i->drop_control_edges();
            i->parent()->replace_uses(i, i->operand(k));
            return true;
          }};
}

Step by_numbers(const std::string& name, std::int64_t value) {
  return {name + " is a number", [name, value](Program& p) {
            Instruction* i = find(*p.module, name);
            Instruction* numbers = add_numbers(*i->parent(), i->shape(), value);
            if (numbers == nullptr) return false;
            i->drop_control_edges();
            i->parent()->replace_uses(i, numbers);
            return true;
          }};
}

// Small numbers, each place its own.
Literal pattern(const Shape& shape) {
  Literal literal(shape);
  const auto width = static_cast<std::size_t>(byte_width(real_type(shape.dtype())));
  const std::span<std::byte> bytes = literal.mutable_bytes();
  for (std::size_t at = 0, n = 0; at + width <= bytes.size(); at += width, ++n)
    write_number(shape.dtype(),
                 bit_width(shape.dtype()) < 4 ? static_cast<std::int64_t>(n % 2)
                                              : static_cast<std::int64_t>(n % 7) - (is_unsigned(shape.dtype()) ? 0 : 2),
                 bytes.subspan(at, width));
  return literal;
}

Step by_parameter(const std::string& name) {
  return {name + " is a parameter", [name](Program& p) {
            Instruction* i = find(*p.module, name);
            Computation& entry = *p.module->entry();
            const auto number = static_cast<std::int64_t>(entry.parameters().size());
            Instruction* parameter = entry.add_parameter(number, i->shape(), "p");
            p.module->config().entry_parameters.push_back(i->shape());
            if (p.has_arguments) p.arguments.push_back(pattern(i->shape()));
            i->drop_control_edges();
            entry.replace_uses(i, parameter);
            return true;
          }};
}

}  // namespace

Instruction* add_numbers(Computation& c, const Shape& shape, std::int64_t value) {
  if (shape.is_tuple()) {
    std::vector<Instruction*> elements;
    for (const Shape& e : shape.elements()) {
      elements.push_back(add_numbers(c, e, value));
      if (elements.back() == nullptr) return nullptr;
    }
    return c.add_tuple(elements);
  }
  if (!shape.is_array()) return nullptr;
  Literal scalar(Shape::scalar(shape.dtype()));
  write_number(shape.dtype(), value, scalar.mutable_bytes());
  Instruction* constant = c.add_constant(scalar);
  if (shape.rank() == 0) return constant;
  Instruction* broadcast = c.add_broadcast(constant, shape.dims(), {});
  broadcast->set_shape(shape);
  return broadcast;
}

Steps replaced_instructions(const Program& program) {
  Steps steps;
  std::vector<const Computation*> computations;
  for (const Computation& c : program.module->computations()) computations.push_back(&c);
  std::ranges::reverse(computations);  // callers first
  for (const Computation* c : computations) {
    std::vector<const Instruction*> instructions;
    for (const Instruction& i : c->instructions()) instructions.push_back(&i);
    std::ranges::reverse(instructions);  // users first
    for (const Instruction* i : instructions) {
      if (is_simple(*i)) continue;
      for (std::int64_t k = 0; k < i->num_operands(); ++k)
        if (compatible(i->operand(k)->shape(), i->shape())) steps.push_back(by_operand(i->name(), k));
      steps.push_back(by_numbers(i->name(), 0));
      steps.push_back(by_numbers(i->name(), 1));
      if (c == program.module->entry() && i->shape().is_array()) steps.push_back(by_parameter(i->name()));
    }
  }
  return steps;
}

Steps smaller_numbers(const Program& program) {
  Steps steps;
  for (const Computation& c : program.module->computations())
    for (const Instruction& i : c.instructions()) {
      if (i.opcode() != Opcode::Constant) continue;
      const std::string name = i.name();
      if (!i.shape().is_scalar() && i.shape().is_array()) steps.push_back(by_numbers(name, 1));
      if (!i.shape().is_scalar() || !is_integral(i.shape().dtype())) continue;
      const std::int64_t value = element_as_int64(i.literal(), 0);
      for (const std::int64_t less : {std::int64_t{0}, std::int64_t{1}, value / 2, value > 0 ? value - 1 : value + 1})
        if (less != value) steps.push_back(by_numbers(name, less));
    }
  return steps;
}

}  // namespace hloom::shrink
