// Operands: names, elements of tuples, operations written in place.
#include <algorithm>

#include "text/module_parser.h"
#include "text/reserved.h"

namespace hloom::text {

using hlo::Instruction;

// The operands and the closing parenthesis.
std::vector<Instruction*> ModuleParser::read_operands(Scope& scope) {
  if (c_.eat(')')) return {};
  const std::size_t first = operands_.size();
  do {
    Instruction* operand = read_operand(scope);
    operands_.push_back(operand);
  } while (c_.ok() && c_.eat(','));
  c_.expect(')');
  std::vector<Instruction*> operands(operands_.begin() + static_cast<std::ptrdiff_t>(first), operands_.end());
  operands_.resize(first);
  return operands;
}

// [shape] name {#index}  or  [shape] opcode(operands)
Instruction* ModuleParser::read_operand(Scope& scope) {
  const char* shape_at = c_.at();
  std::optional<Shape> shape;
  if (c_.peek() != '%' && at_shape(c_)) shape = read_shape(c_, shape_rules());
  const char next = c_.peek();
  if (shape && scope.free_operands && (next == ',' || next == ')')) return free_operand(scope, {}, *shape);
  const std::string_view name = c_.take_name("an operand");
  if (!c_.ok()) return nullptr;
  if (next != '%' && c_.peek() == '(') return read_nested(scope, name, std::move(shape));
  const bool has_elements = c_.peek() == '#';
  Instruction* operand = find_operand(scope, name, has_elements ? std::nullopt : shape, shape_at);
  if (!has_elements) return operand;
  while (c_.ok() && c_.eat('#')) operand = element_of(scope, operand);
  if (c_.ok() && shape && !compatible(*shape, operand->shape()))
    c_.fail("H609", shape_at,
            words("the operand is ", to_string(operand->shape(), false), ", not ", to_string(*shape, false)));
  return operand;
}

// An operation in the place of an operand, whose opcode has been read. It takes no attributes.
Instruction* ModuleParser::read_nested(Scope& scope, std::string_view opcode, std::optional<Shape> shape) {
  Operation op;
  const std::string name = words(opcode, ".anon");
  op.name = name;
  op.shape = std::move(shape);
  op.has_shape = op.shape.has_value();
  c_.set_position(opcode.data());
  read_operation(scope, op);
  if (op.made != nullptr) complete(op);
  return op.made;
}

Instruction* ModuleParser::find_operand(Scope& scope, std::string_view name, const std::optional<Shape>& shape,
                                        const char* shape_at) {
  const NameTable::Entry found = scope.names.find(name);
  if (found.at == nullptr || found.at == scope.defining) {
    if (scope.free_operands && shape) return free_operand(scope, name, *shape);
    if (is_reserved(name) && name.data()[-1] != '%') {
      c_.fail("H501", name.data(), words("expected an operand, found the reserved word '", name, "'"));
      return nullptr;
    }
    c_.fail("H608", name.data(),
            words("there is no instruction '", name, "' before this one in '", scope.computation.name(), "'",
                  did_you_mean(name, scope.names.names())));
    return nullptr;
  }
  if (found.instruction == nullptr) {
    c_.give_up();
    return nullptr;
  }
  const Shape& actual = found.instruction->shape();
  if (shape && actual.is_valid() && !compatible(*shape, actual))
    c_.fail("H609", shape_at, words("'", name, "' is ", to_string(actual, false), ", not ", to_string(*shape, false)));
  return found.instruction;
}

// The element of `tuple` whose number stands at the cursor: made once for each.
Instruction* ModuleParser::element_of(Scope& scope, Instruction* tuple) {
  const char* at = c_.at();
  const std::int64_t index = c_.integer("the number of an element");
  if (!c_.ok()) return tuple;
  if (!tuple->shape().is_valid()) {
    c_.give_up();
    return tuple;
  }
  if (!tuple->shape().is_tuple() || index < 0 || index >= static_cast<std::int64_t>(tuple->shape().elements().size())) {
    c_.fail("H611", at,
            words("'", tuple->name(), "' of shape ", to_string(tuple->shape(), false), " has no element ", index));
    return tuple;
  }
  auto& made = scope.elements[tuple];
  const auto known = std::ranges::find(made, index, &std::pair<std::int64_t, Instruction*>::first);
  if (known != made.end()) return known->second;
  Instruction* element = scope.computation.add_get_tuple_element(tuple, index, words(tuple->name(), "_", index));
  element->set_place(tuple->line(), tuple->column());
  made.emplace_back(index, element);
  return element;
}

// An operand of a single instruction, which becomes a parameter.
Instruction* ModuleParser::free_operand(Scope& scope, std::string_view name, const Shape& shape) {
  const auto number = static_cast<std::int64_t>(scope.computation.parameters().size());
  const std::string made_up = words("_", number);
  Instruction* parameter =
      scope.computation.add_parameter(number, shape, name.empty() ? std::string_view(made_up) : name);
  scope.parameter_at.push_back(c_.position());
  if (name.empty()) return parameter;
  scope.names.add(name);
  scope.names.set(name, parameter);
  return parameter;
}

}  // namespace hloom::text
