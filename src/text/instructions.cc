// Instructions: name, shape, opcode, operands, attributes.
#include <algorithm>
#include <bit>

#include "hlo/infer_shape.h"
#include "text/attribute_rules.h"
#include "text/enums.h"
#include "text/literals.h"
#include "text/module_parser.h"
#include "text/reserved.h"

namespace hloom::text {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Ops whose result shape operands and attributes do not tell (hlo-text 6.1).
bool needs_shape(Opcode opcode) {
  switch (opcode) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Iota:
    case Opcode::Convert:
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
    case Opcode::Reshape:
    case Opcode::DynamicReshape:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::ReducePrecision:
    case Opcode::StochasticConvert:
    case Opcode::Rng:
    case Opcode::RngBitGenerator:
    case Opcode::RngGetAndUpdateState:
    case Opcode::CustomCall:
    case Opcode::Fusion:
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone: return true;
    default: return hlo::kind(opcode) == hlo::OpcodeKind::Collective;
  }
}

std::vector<std::string_view> all_opcodes() {
  std::vector<std::string_view> names;
  for (int i = 0; i < hlo::kNumOpcodes; ++i) names.push_back(name(Opcode(i)));
  return names;
}

}  // namespace

// [ROOT] name = [shape] opcode(operands) {, attribute}
void ModuleParser::read_instruction(Scope& scope) {
  const char* start = c_.at();
  const bool root = c_.eat_word("ROOT");
  const char* name_at = c_.at();
  bool percent = false;
  Operation op;
  op.name = c_.take_name("an instruction", &percent);
  if (!c_.ok()) return;
  if (!percent && c_.after(op.name) == '=')
    return c_.fail("H104", name_at,
                   words("'", op.name, "=' reads as an attribute; put a space before '=' or a '%' before the name"));
  if (!percent && is_reserved(op.name))
    return c_.fail("H501", name_at, words("expected an instruction, found the reserved word '", op.name, "'; write '%",
                                          op.name, "' if it is a name"));
  c_.expect('=');
  const NameTable::Entry known = scope.names.find(op.name);
  if (c_.ok() && known.at != nullptr)
    return c_.fail("H211", op.name.data(), words("the instruction '", op.name, "' is defined twice"),
                   {{known.at, "the first definition"}});
  if (c_.ok() && root && scope.root_at != nullptr)
    return c_.fail("H212", start, words("a second ROOT in '", scope.computation.name(), "'"),
                   {{scope.root_at, "the first ROOT"}});
  if (root) scope.root_at = start;
  read_operation(scope, op);
  scope.names.insert(op.name, op.made);
  if (op.made == nullptr) return;
  scope.last = op.made;
  if (root) scope.root = op.made;
  read_attributes(op);
  complete(op);
}

// Reads `word` as an opcode, or as X-start, X-update, X-done of one (hlo-text 6.3).
bool ModuleParser::take_opcode(Operation& op) {
  op.at = c_.at();
  op.word = c_.take_word("an opcode");
  if (!c_.ok()) return false;
  if (const auto opcode = hlo::opcode_named(op.word)) {
    op.opcode = *opcode;
    return true;
  }
  struct Suffix {
    std::string_view text;
    Operation::Sugar sugar;
    Opcode opcode;
  };
  for (const Suffix& s : {Suffix{"-start", Operation::Sugar::Start, Opcode::AsyncStart},
                          Suffix{"-update", Operation::Sugar::Update, Opcode::AsyncUpdate},
                          Suffix{"-done", Operation::Sugar::Done, Opcode::AsyncDone}}) {
    if (!op.word.ends_with(s.text)) continue;
    const std::string_view base = op.word.substr(0, op.word.size() - s.text.size());
    const auto wrapped = hlo::opcode_named(base);
    if (!wrapped) {
      c_.fail("H604", op.at, words("'", base, "' of '", op.word, "' is no opcode", did_you_mean(base, all_opcodes())));
      return false;
    }
    op.opcode = s.opcode;
    op.sugar = s.sugar;
    op.wrapped = *wrapped;
    return true;
  }
  c_.fail("H610", op.at, words("unknown opcode '", op.word, "'", did_you_mean(op.word, all_opcodes())));
  return false;
}

// Needs: op.name. An operand's shape may have been read already.
void ModuleParser::read_operation(Scope& scope, Operation& op) {
  const Cursor::Depth depth(c_);
  if (!op.has_shape && at_shape(c_)) {
    op.shape = read_shape(c_, shape_rules());
    op.has_shape = true;
  }
  if (!c_.ok() || !take_opcode(op)) return;
  const Place place = places_.find(op.at);
  if (!op.has_shape && needs_shape(op.opcode))
    return c_.fail("H601", op.at, words("the result shape of '", op.word, "' must be written"));
  c_.expect('(');
  if (op.opcode == Opcode::Parameter) {
    read_parameter(scope, op);
  } else if (op.opcode == Opcode::Constant) {
    read_constant(scope, op);
  } else {
    std::vector<Instruction*> operands = read_operands(scope);
    if (!c_.ok()) return;
    const int arity = hlo::arity(op.opcode);
    if (arity >= 0 && static_cast<int>(operands.size()) != arity)
      return c_.fail("H603", op.at, words("'", op.word, "' expects ", arity, " operands, found ", operands.size()));
    op.made = scope.computation.add(op.opcode, op.has_shape ? *std::move(op.shape) : Shape(), std::move(operands), op.name);
  }
  if (op.made == nullptr) return;
  op.made->set_place(place.line, place.column);
  set_defaults(*op.made);
  if (op.sugar == Operation::Sugar::Start) wrap_async(op);
  if (op.opcode == Opcode::AsyncUpdate || op.opcode == Opcode::AsyncDone) check_async_link(op);
}

void ModuleParser::read_parameter(Scope& scope, Operation& op) {
  const char* at = c_.at();
  const std::int64_t number = c_.integer("the number of the parameter");
  c_.expect(')');
  if (!c_.ok()) return;
  auto& seen = scope.parameter_at;
  const auto known = static_cast<std::int64_t>(seen.size());
  // A text has no room for more parameters than this; it keeps a large number from taking memory.
  const auto most = static_cast<std::int64_t>(part_.size() / 16);
  if (number < 0 || (number >= known && parameter_slots_ + number - known > most))
    return c_.fail("H214", at, words("there can be no parameter ", number, ": the numbers go from 0 without gaps"));
  if (number < known && seen[static_cast<std::size_t>(number)] != nullptr)
    return c_.fail("H214", at, words("parameter ", number, " is defined twice"),
                   {{seen[static_cast<std::size_t>(number)], "the first definition"}});
  if (number >= known) {
    parameter_slots_ += number + 1 - known;
    seen.resize(static_cast<std::size_t>(number) + 1);
  }
  seen[static_cast<std::size_t>(number)] = at;
  op.made = scope.computation.add_parameter(number, *op.shape, op.name);
}

void ModuleParser::read_constant(Scope& scope, Operation& op) {
  hlo::Literal literal = read_literal(c_, *op.shape);
  c_.expect(')');
  if (!c_.ok()) return;
  op.made = scope.computation.add(Opcode::Constant, *op.shape, {}, op.name);
  op.made->mutable_attr<hlo::ConstantAttr>().literal = std::move(literal);
}

// Defaults that depend on operands.
void ModuleParser::set_defaults(Instruction& i) {
  if (i.operands().empty()) return;
  const Shape& first = i.operand(0)->shape();
  switch (i.opcode()) {
    case Opcode::Compare: i.mutable_attr<hlo::CompareAttr>().type = default_comparison(first.dtype()); return;
    case Opcode::Outfeed: i.mutable_attr<hlo::FeedAttr>().outfeed_shape = first; return;
    case Opcode::Map: {
      hlo::Dims all;
      for (std::int64_t d = 0; d < first.rank(); ++d) all.push_back(d);
      return i.set_dimensions(std::move(all));
    }
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
      if (const auto* before = i.operand(0)->attributes().get_if<hlo::AsyncAttr>())
        i.mutable_attr<hlo::AsyncAttr>().execution_thread = before->execution_thread;
      return;
    default: return;
  }
}

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
    return c_.fail("H503", at, words("'", op.word, "' accepts no attribute '", key, "'", did_you_mean(key, names),
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
      c_.fail("H536", op.at, words("a slice of ", slice->starts.size(), " dimensions of an array of rank ", operand.rank()));
  }
  const auto* convolution = i.attributes().get_if<hlo::ConvolutionAttr>();
  if (convolution == nullptr || i.num_operands() < 2) return;
  const hlo::ConvolutionDims& dims = convolution->dims;
  const auto check = [&](std::string_view part, const Shape& shape, std::size_t spatial, std::size_t unused) {
    if (shape.is_array() && shape.dims().size() != 2 + spatial + unused)
      c_.fail("H534", op.at, words("the labels of the ", part, " are for rank ", 2 + spatial + unused, ", it has ", shape.rank()));
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
      return c_.fail("H606", at, words("there is no instruction '", name, "' before this one",
                                       did_you_mean(name, scope.names.names())));
    if (found.instruction == nullptr) return c_.give_up();
    if (found.instruction == &i) return c_.fail("H607", at, words("'", name, "' would wait for itself"));
    i.add_control_predecessor(found.instruction);
  });
}

}  // namespace hloom::text
