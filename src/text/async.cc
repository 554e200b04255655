// The short form of asynchronous operations: X-start, X-update, X-done (hlo-text 6.3).
#include "text/module_parser.h"

namespace hloom::text {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Gives the start a computation of its own with one X and its parameters.
void ModuleParser::wrap_async(Operation& op) {
  const Shape& shape = op.made->shape();
  if (!shape.is_tuple() || shape.elements().size() < 2)
    return c_.fail(
        "H605", op.at,
        words("the shape of '", op.word, "' must be ((operands), result, …), found ", to_string(shape, false)));
  if (op.wrapped == Opcode::Parameter || op.wrapped == Opcode::Constant)
    return c_.fail("H604", op.at, words("'", hlo::name(op.wrapped), "' cannot run asynchronously"));
  const int arity = hlo::arity(op.wrapped);
  if (arity >= 0 && op.made->num_operands() != arity)
    return c_.fail("H603", op.at,
                   words("'", op.word, "' expects ", arity, " operands, found ", op.made->num_operands()));
  out_of_order_ = true;
  Computation* wrapped = module_->add_computation(words("wrapped_", hlo::name(op.wrapped)));
  std::vector<Instruction*> parameters;
  for (const Instruction* operand : op.made->operands())
    parameters.push_back(
        wrapped->add_parameter(static_cast<std::int64_t>(parameters.size()), operand->shape(), "async_param"));
  op.wrapped_made = wrapped->add(op.wrapped, shape.element(1), std::move(parameters));
  op.wrapped_made->set_place(op.made->line(), op.made->column());
  wrapped->set_root(op.wrapped_made);
  set_defaults(*op.wrapped_made);
  op.made->set_called({wrapped});
}

namespace {

const Instruction* start_of(const Instruction* link) {
  while (link->opcode() == Opcode::AsyncUpdate && link->num_operands() == 1) link = link->operand(0);
  return link->opcode() == Opcode::AsyncStart ? link : nullptr;
}

}  // namespace

void ModuleParser::check_async_link(const Operation& op) {
  if (op.made->num_operands() != 1)
    return c_.fail("H603", op.at, words("'", op.word, "' expects 1 operand, found ", op.made->num_operands()));
  const Instruction* start = start_of(op.made->operand(0));
  if (start == nullptr)
    return c_.fail("H605", op.at,
                   words("the operand of '", op.word, "' must be an asynchronous start or update, found '",
                         hlo::name(op.made->operand(0)->opcode()), "'"));
  if (op.sugar == Operation::Sugar::None || start->called().size() != 1 || start->called(0) == nullptr ||
      start->called(0)->root() == nullptr)
    return;
  const Opcode wrapped = start->called(0)->root()->opcode();
  if (wrapped != op.wrapped)
    c_.fail("H605", op.at, words("'", op.word, "' of a start that runs '", hlo::name(wrapped), "'"));
}

// The thread of a link is its start's.
void ModuleParser::finish_async(const Operation& op) {
  const auto* attr = op.made->attributes().get_if<hlo::AsyncAttr>();
  if (attr == nullptr || op.made->num_operands() != 1 || op.opcode == Opcode::AsyncStart) return;
  const auto* before = op.made->operand(0)->attributes().get_if<hlo::AsyncAttr>();
  if (before != nullptr && before->execution_thread != attr->execution_thread)
    c_.fail("H605", op.at,
            words("runs on thread \"", attr->execution_thread, "\", its start on \"", before->execution_thread, "\""));
}

}  // namespace hloom::text
