#include "passes/inline.h"

#include "base/check.h"

namespace hloom::passes {

hlo::Instruction* inline_computation(const hlo::Computation& callee, const std::vector<hlo::Instruction*>& arguments,
                                     hlo::Computation& into, const std::vector<hlo::Instruction*>& before,
                                     const std::vector<hlo::Instruction*>& after) {
  HLOOM_CHECK(arguments.size() == callee.parameters().size());
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> copies;
  for (const hlo::Instruction* i : callee.post_order()) {
    if (i->opcode() == hlo::Opcode::Parameter) {
      copies.emplace(i, arguments[static_cast<std::size_t>(i->parameter_number())]);
      continue;
    }
    std::vector<hlo::Instruction*> operands;
    for (const hlo::Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    hlo::Instruction* copy = into.add_clone(*i, std::move(operands));
    for (hlo::Instruction* earlier : i->control_predecessors())
      if (earlier->opcode() != hlo::Opcode::Parameter) copy->add_control_predecessor(copies.at(earlier));
    for (hlo::Instruction* earlier : before) copy->add_control_predecessor(earlier);
    for (hlo::Instruction* later : after) later->add_control_predecessor(copy);
    copies.emplace(i, copy);
  }
  return copies.at(callee.root());
}

}  // namespace hloom::passes
