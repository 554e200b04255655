// Instructions: name, shape, opcode, operands, attributes.
#include <algorithm>

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
    return c_.fail("H501", name_at,
                   words("expected an instruction, found the reserved word '", op.name, "'; write '%", op.name,
                         "' if it is a name"));
  c_.expect('=');
  if (!c_.ok()) return;
  const NameTable::Entry known = scope.names.add(op.name);
  if (known.at != nullptr)
    return c_.fail("H211", op.name.data(), words("the instruction '", op.name, "' is defined twice"),
                   {{known.at, "the first definition"}});
  if (root && scope.root_at != nullptr)
    return c_.fail("H212", start, words("a second ROOT in '", scope.computation.name(), "'"),
                   {{scope.root_at, "the first ROOT"}});
  if (root) scope.root_at = start;
  scope.defining = op.name.data();
  read_operation(scope, op);
  scope.defining = nullptr;
  if (op.made == nullptr) return;
  scope.names.set(op.name, op.made);
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
    op.made =
        scope.computation.add(op.opcode, op.has_shape ? *std::move(op.shape) : Shape(), std::move(operands), op.name);
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

}  // namespace hloom::text
