#include "interp/machine.h"

#include <algorithm>
#include <unordered_set>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/device_transfers.h"
#include "hlo/participants.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"

namespace hloom::interp {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Computations nest at most this deep, so that the stack holds.
constexpr std::int64_t kMaxDepth = 500;

// What has to run: what the root needs, and what has side effects with what that needs.
std::unordered_set<const Instruction*> live_instructions(const Computation& computation,
                                                         const std::vector<Instruction*>& order) {
  std::unordered_set<const Instruction*> live{computation.root()};
  std::vector<const Instruction*> open{computation.root()};
  const auto close = [&] {
    while (!open.empty()) {
      const Instruction* i = open.back();
      open.pop_back();
      for (const Instruction* operand : i->operands())
        if (live.insert(operand).second) open.push_back(operand);
    }
  };
  close();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (live.contains(*it) || !hlo::has_side_effect(**it)) continue;
    live.insert(*it);
    open.push_back(*it);
    close();
  }
  return live;
}

// Operands before users; and as in the compiled program a device has sent what others may wait for before it waits itself.
std::vector<Instruction*> order_of(const Computation& computation) {
  std::vector<Instruction*> order = computation.post_order(), sends, receives;
  for (Instruction* i : order) {
    const auto* transfer = i->attributes().get_if<hlo::TransferAttr>();
    if (transfer == nullptr || transfer->is_host_transfer) continue;
    if (i->opcode() == Opcode::Send) sends.push_back(i);
    if (i->opcode() == Opcode::RecvDone) receives.push_back(i);
  }
  if (sends.empty() || receives.empty()) return order;
  std::unordered_map<const Instruction*, std::vector<Instruction*>> sent_before;
  for (const auto& [send, receive] : hlo::sends_before_receives(sends, receives)) sent_before[receive].push_back(send);
  std::vector<Instruction*> result, stack;
  std::unordered_set<const Instruction*> placed;
  for (Instruction* start : order) {
    stack.push_back(start);
    while (!stack.empty()) {
      Instruction* top = stack.back();
      const std::size_t depth = stack.size();
      const auto push = [&](const std::vector<Instruction*>& before) {
        for (auto it = before.rbegin(); it != before.rend(); ++it)
          if (!placed.contains(*it)) stack.push_back(*it);
      };
      if (!placed.contains(top)) {
        push(sent_before[top]);
        push(top->control_predecessors());
        push(top->operands());
      }
      if (stack.size() > depth) continue;
      stack.pop_back();
      if (placed.insert(top).second) result.push_back(top);
    }
  }
  return result;
}

// Operations that pass run-time sizes on, or work with them.
bool handles_sizes(Opcode opcode) {
  switch (opcode) {
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::Fusion:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
    case Opcode::Copy:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
    case Opcode::OptBarrier:
    case Opcode::Domain:
    case Opcode::AddDependency:
    case Opcode::AfterAll:
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize: return true;
    default: return false;
  }
}

// Other devices may have sizes where this one has the bounds.
bool may_get_sizes(const Instruction& i) {
  return hlo::has_participants(i.opcode()) &&
         std::ranges::any_of(i.operands(), [](const Instruction* o) { return o->shape().has_dynamic_dims(); });
}

}  // namespace

Machine::Machine(const Options& options, Place place, Fabric* fabric)
    : options_(options), place_(place), fabric_(fabric), rng_state_(1) {}

Machine::~Machine() = default;

const hlo::DeviceTransfers& Machine::device_transfers(const hlo::Module& module) {
  if (!device_transfers_) device_transfers_ = std::make_unique<hlo::DeviceTransfers>(module);
  return *device_transfers_;
}

ScalarFunction& Machine::scalar_function(const Computation& computation) {
  auto& function = scalar_functions_[&computation];
  if (!function) function = std::make_unique<ScalarFunction>(*this, computation);
  return *function;
}

const Machine::Prepared& Machine::prepared(const Computation& computation) {
  const auto [found, is_new] = prepared_.try_emplace(&computation);
  Prepared& result = found->second;
  if (!is_new) return result;
  const std::vector<Instruction*> order = order_of(computation);
  const auto live = live_instructions(computation, order);
  std::unordered_map<const Instruction*, std::size_t> slots;
  for (const Instruction* i : order) {
    if (!live.contains(i)) continue;
    Step step{i, result.num_slots++, {}, {}};
    if (i->opcode() == Opcode::Constant) step.constant = Value(i->literal());
    for (const Instruction* operand : i->operands()) step.operands.push_back({slots.at(operand), false});
    slots[i] = step.slot;
    result.steps.push_back(std::move(step));
  }
  result.root = slots.at(computation.root());
  std::vector<bool> used(result.num_slots, false);
  used[result.root] = true;
  for (auto step = result.steps.rbegin(); step != result.steps.rend(); ++step)
    for (auto operand = step->operands.rbegin(); operand != step->operands.rend(); ++operand)
      if (!used[operand->slot]) operand->last = used[operand->slot] = true;
  return result;
}

Expected<Value> Machine::run(const Computation& computation, std::vector<Value> arguments) {
  HLOOM_CHECK(arguments.size() == computation.parameters().size());
  if (depth_ >= kMaxDepth)
    return fail(Code::ResourceExhausted, computation.name(), ": calls nest deeper than ", kMaxDepth);
  ++depth_;
  const Prepared& ready = prepared(computation);
  std::vector<Value> slots(ready.num_slots);
  std::vector<Value> operands;
  for (const Step& step : ready.steps) {
    if (step.instruction->opcode() == Opcode::Parameter) {
      slots[step.slot] = std::move(arguments[static_cast<std::size_t>(step.instruction->parameter_number())]);
      continue;
    }
    if (step.instruction->opcode() == Opcode::Constant) {
      slots[step.slot] = step.constant;
      continue;
    }
    operands.clear();
    for (const Operand& operand : step.operands) {
      Value& value = slots[operand.slot];
      operands.push_back(operand.last ? std::move(value) : value);
    }
    slots[step.slot] = TRY(evaluate(*step.instruction, operands));
  }
  --depth_;
  return std::move(slots[ready.root]);
}

Expected<> Machine::check_size(const Instruction& instruction, const Shape& shape) const {
  for (const Shape& element : shape.elements()) TRY(check_size(instruction, element));
  if (!shape.is_array()) return {};
  const auto count = shape.element_count();
  if (!count || *count > options_.max_array_bytes / byte_width(shape.dtype()))
    return fail(Code::ResourceExhausted, instruction.name(), ": ", to_string(shape, false), " is larger than ",
                options_.max_array_bytes, " bytes, the most that the interpreter may take for an array");
  return {};
}

Expected<Value> Machine::evaluate(const Instruction& instruction, std::span<Value> operands) {
  if (options_.max_steps > 0 && ++steps_ > options_.max_steps)
    return fail(Code::ResourceExhausted, instruction.name(), ": the program ran ", options_.max_steps,
                " instructions, the most it may");
  TRY(check_size(instruction, instruction.shape()));
  const bool dynamic = !handles_sizes(instruction.opcode()) &&
                       (std::any_of(operands.begin(), operands.end(), [](const Value& v) { return v.is_dynamic(); }) ||
                        may_get_sizes(instruction));
  if (options_.before != nullptr) {
    (*options_.before)(instruction, [&] {
      std::vector<hlo::Literal> literals;
      for (std::size_t k = 0; k < operands.size(); ++k)
        literals.push_back(to_literal(operands[k], instruction.operand(static_cast<std::int64_t>(k))->shape()));
      return literals;
    });
  }
  Value result = TRY(dynamic ? evaluate_dynamic(*this, instruction, operands)
                             : evaluate_static(instruction, instruction.shape(), operands));
  if (options_.observer != nullptr)
    (*options_.observer)(place_.device, instruction, to_literal(result, instruction.shape()));
  return result;
}

Expected<Value> Machine::evaluate_static(const Instruction& instruction, const Shape& shape,
                                         std::span<Value> operands) {
  return dispatch(Call{instruction, shape, operands, *this});
}

}  // namespace hloom::interp
