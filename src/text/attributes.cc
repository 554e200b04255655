// The attributes of an instruction, and what is to be done when all are read.
#include <algorithm>
#include <bit>

#include "hlo/infer_shape.h"
#include "text/attribute_rules.h"
#include "text/module_parser.h"

namespace hloom::text {

using hlo::Instruction;
using hlo::Opcode;

namespace {

std::vector<std::string_view> names_of(RuleList own, RuleList more) {
  std::vector<std::string_view> names;
  for (const AttributeRule& r : own) names.push_back(r.name);
  for (const AttributeRule& r : more)
    if (std::ranges::find(names, r.name) == names.end()) names.push_back(r.name);
  return names;
}

const AttributeRule* find_rule(RuleList rules, std::string_view key) {
  for (const AttributeRule& r : rules)
    if (r.name == key || (!r.other_name.empty() && r.other_name == key)) return &r;
  return nullptr;
}

}  // namespace

void ModuleParser::read_attributes(Operation& op) {
  while (c_.ok() && c_.eat(',')) {
    const char* at = c_.at();
    const std::string_view key = c_.take_key("an attribute");
    if (c_.ok()) read_attribute(op, key, at);
  }
}

void ModuleParser::read_attribute(Operation& op, std::string_view key, const char* at) {
  // With sugar the attributes of X come first, then those of the start.
  const RuleList inner = op.wrapped_made != nullptr ? own_rules(op.wrapped) : RuleList();
  const RuleList outer = rules_for(op.opcode);
  const AttributeRule* rule = find_rule(inner, key);
  const bool is_inner = rule != nullptr;
  if (!is_inner) rule = find_rule(outer, key);
  if (rule == nullptr && op.opcode == Opcode::Shuffle) return read_raw_attribute(c_, at, *op.made);
  if (rule == nullptr) {
    const auto names = names_of(inner, outer);
    return c_.fail("H503", at,
                   words("'", op.word, "' accepts no attribute '", key, "'", did_you_mean(key, names),
                         "; accepted: ", listed(names)));
  }
  std::uint64_t& seen = is_inner ? op.seen_inner : op.seen;
  const std::uint64_t bit = 1ull << (rule - (is_inner ? inner : outer).data());
  if ((seen & bit) != 0) return c_.fail("H502", at, words("the attribute '", key, "' comes twice"));
  seen |= bit;
  rule->read(*this, is_inner ? *op.wrapped_made : *op.made);
}

void ModuleParser::check_required(const Operation& op, std::uint64_t seen, const Instruction& i) {
  std::uint64_t missing = required_rules(i.opcode()) & ~seen;
  for (; missing != 0 && c_.ok(); missing &= missing - 1) {
    const AttributeRule& rule = rules_for(i.opcode())[static_cast<std::size_t>(std::countr_zero(missing))];
    if (is_required(rule, i)) c_.fail("H504", op.at, words("'", op.word, "' needs the attribute '", rule.name, "'"));
  }
  if (c_.ok() && std::ranges::find(i.called(), nullptr) != i.called().end())
    c_.fail("H504", op.at, words("'", op.word, "' needs a computation for each of its places"));
}

// What is to be done when all attributes are read.
void ModuleParser::complete(Operation& op) {
  if (!c_.ok()) return;
  if (op.wrapped_made != nullptr)
    check_required(op, op.seen_inner, *op.wrapped_made);
  else
    check_required(op, op.seen, *op.made);
  finish_async(op);
  if (c_.ok()) check_ranks(op, op.wrapped_made != nullptr ? *op.wrapped_made : *op.made);
  infer(op);
}

// Attributes with an entry for each dimension.
void ModuleParser::check_ranks(const Operation& op, const Instruction& i) {
  if (const auto* slice = i.attributes().get_if<hlo::SliceAttr>()) {
    const Shape& operand = i.operand(0)->shape();
    if (operand.is_array() && operand.dims().size() != slice->starts.size())
      c_.fail("H536", op.at,
              words("a slice of ", slice->starts.size(), " dimensions of an array of rank ", operand.rank()));
  }
  const auto* convolution = i.attributes().get_if<hlo::ConvolutionAttr>();
  if (convolution == nullptr || i.num_operands() < 2) return;
  const hlo::ConvolutionDims& dims = convolution->dims;
  const auto check = [&](std::string_view part, const Shape& shape, std::size_t spatial, std::size_t unused) {
    if (shape.is_array() && shape.dims().size() != 2 + spatial + unused)
      c_.fail("H534", op.at,
              words("the labels of the ", part, " are for rank ", 2 + spatial + unused, ", it has ", shape.rank()));
  };
  check("input", i.operand(0)->shape(), dims.input_spatial.size(), dims.input_unused.size());
  check("kernel", i.operand(1)->shape(), dims.kernel_spatial.size(), dims.kernel_unused.size());
  check("result", i.shape(), dims.output_spatial.size(), dims.output_unused.size());
}

// Gives an instruction whose shape is not written the one that follows.
void ModuleParser::infer(Operation& op) {
  if (!c_.ok() || op.has_shape) return;
  // Where an operand is wrong already, that has been said.
  if (std::ranges::any_of(op.made->operands(), [](const Instruction* o) { return !o->shape().is_valid(); }))
    return c_.give_up();
  if (!errors_.empty() && std::ranges::any_of(op.made->called(), [](const hlo::Computation* callee) {
        return callee == nullptr || callee->root() == nullptr || !callee->root()->shape().is_valid();
      }))
    return c_.give_up();
  Expected<Shape> shape = hlo::infer_shape(*op.made);
  if (!shape) return c_.fail("H611", op.at, shape.error().message());
  op.made->set_shape(*std::move(shape));
}

void ModuleParser::read_control_predecessors(Instruction& i) {
  Scope& scope = *scopes_.back();
  c_.list('{', '}', [&] {
    const char* at = c_.at();
    const std::string_view name = c_.take_name("an instruction");
    if (!c_.ok()) return;
    const NameTable::Entry found = scope.names.find(name);
    if (found.at == nullptr)
      return c_.fail(
          "H606", at,
          words("there is no instruction '", name, "' before this one", did_you_mean(name, scope.names.names())));
    if (found.instruction == nullptr) return c_.give_up();
    if (found.instruction == &i) return c_.fail("H607", at, words("'", name, "' would wait for itself"));
    i.add_control_predecessor(found.instruction);
  });
}

}  // namespace hloom::text
