#include "passes/liveness.h"

#include "passes/order.h"

namespace hloom::passes {

void Liveness::mark(const hlo::Computation& computation) {
  live_.resize(static_cast<std::size_t>(computation.module().num_ids()));  // some may be new
  std::vector<const hlo::Instruction*> stack;
  const auto need = [&](const hlo::Instruction* i) {
    auto live = live_[static_cast<std::size_t>(i->id())];
    if (live) return;
    live = true;
    stack.push_back(i);
  };
  need(computation.root());
  for (const hlo::Instruction& i : computation.instructions())
    if (i.opcode() == hlo::Opcode::Parameter || effects_.of(i)) need(&i);
  while (!stack.empty()) {
    const hlo::Instruction* i = stack.back();
    stack.pop_back();
    for (const hlo::Instruction* operand : i->operands()) need(operand);
    for (const hlo::Instruction* before : i->control_predecessors()) need(before);
  }
}

namespace {

// What came before `dead` comes before what came after it.
void bridge_control_edges(hlo::Instruction& dead) {
  const std::vector<hlo::Instruction*> before = dead.control_predecessors(), after = dead.control_successors();
  for (hlo::Instruction* successor : after)
    for (hlo::Instruction* predecessor : before) successor->add_control_predecessor(predecessor);
  dead.drop_control_edges();
}

}  // namespace

std::int64_t remove_dead_instructions(hlo::Computation& computation, Liveness& liveness) {
  liveness.mark(computation);
  restore_order(computation);  // users are removed before operands
  for (hlo::Instruction& i : computation.instructions())
    if (!liveness.is_live(i)) bridge_control_edges(i);
  return computation.remove_all([&](const hlo::Instruction& i) { return !liveness.is_live(i); });
}

}  // namespace hloom::passes
