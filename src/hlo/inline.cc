#include "hlo/inline.h"

#include "base/check.h"

namespace hloom::hlo {

Instruction* inline_computation(const Computation& callee, const std::vector<Instruction*>& arguments,
                                Computation& into, const std::vector<Instruction*>& before,
                                const std::vector<Instruction*>& after) {
  HLOOM_CHECK(arguments.size() == callee.parameters().size());
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : callee.post_order()) {
    if (i->opcode() == Opcode::Parameter) {
      copies.emplace(i, arguments[static_cast<std::size_t>(i->parameter_number())]);
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    Instruction* copy = into.add_clone(*i, std::move(operands));
    for (Instruction* earlier : i->control_predecessors())
      if (earlier->opcode() != Opcode::Parameter) copy->add_control_predecessor(copies.at(earlier));
    for (Instruction* earlier : before) copy->add_control_predecessor(earlier);
    for (Instruction* later : after) later->add_control_predecessor(copy);
    copies.emplace(i, copy);
  }
  return copies.at(callee.root());
}

}  // namespace hloom::hlo
