// Control flow and structure (hlo-ops 10, 11).

#include "base/try.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

std::vector<Value> taken(std::span<Value> values) {
  return {std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())};
}

// (first, second, context …): what follows the two in the shape of a start is zero.
Value pair_with_context(const Shape& shape, Value first, Value second) {
  std::vector<Value> elements{std::move(first), std::move(second)};
  for (std::size_t i = 2; i < shape.elements().size(); ++i) elements.emplace_back(hlo::Literal(shape.elements()[i]));
  return Value::tuple(std::move(elements));
}

}  // namespace

Expected<Value> tuple(const Call& call) { return Value::tuple(taken(call.operands)); }

Expected<Value> get_tuple_element(const Call& call) { return call.operands[0].element(call.instruction.tuple_index()); }

// v = init; while condition(v): v = body(v)
Expected<Value> while_loop(const Call& call) {
  Value state = std::move(call.operands[0]);
  for (;;) {
    const Value more = TRY(call.machine.run(*call.instruction.condition(), {state}));
    if (more.array().bytes()[0] == std::byte{0}) return state;
    std::vector<Value> arguments;
    arguments.push_back(std::move(state));
    state = TRY(call.machine.run(*call.instruction.body(), std::move(arguments)));
  }
}

// A pred chooses the first branch if true; an index out of range the last.
Expected<Value> conditional(const Call& call) {
  const hlo::Literal& selector = call.array(0);
  const auto branches = static_cast<std::int64_t>(call.instruction.called().size());
  std::int64_t branch = hlo::element_as_int64(selector, 0);
  if (selector.dtype() == DType::Pred)
    branch = branch != 0 ? 0 : 1;
  else if (branch < 0 || branch >= branches)
    branch = branches - 1;
  std::vector<Value> arguments;
  arguments.push_back(std::move(call.operands[static_cast<std::size_t>(branch + 1)]));
  return call.machine.run(*call.instruction.called(branch), std::move(arguments));
}

Expected<Value> call(const Call& c) { return c.machine.run(*c.instruction.called(0), taken(c.operands)); }

// ((operands), result, context …): the work is done at the start.
Expected<Value> async_start(const Call& call) {
  std::vector<Value> operands(call.operands.begin(), call.operands.end());
  Value result = TRY(call.machine.run(*call.instruction.called(0), operands));
  return pair_with_context(call.shape, Value::tuple(std::move(operands)), std::move(result));
}

// (destination, source, context …)
Expected<Value> copy_start(const Call& call) {
  return pair_with_context(call.shape, call.operands[0], call.operands[0]);
}

// (operand, result, context …), tuples where there are several operands.
Expected<Value> started(const Call& call, Expected<Value> result) {
  Value value = TRY(std::move(result));
  std::vector<Value> operands(call.operands.begin(), call.operands.end());
  Value first = operands.size() == 1 ? operands[0] : Value::tuple(std::move(operands));
  return pair_with_context(call.shape, std::move(first), std::move(value));
}

}  // namespace hloom::interp
