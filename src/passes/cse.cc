#include "passes/cse.h"

#include <unordered_map>
#include <unordered_set>

#include <algorithm>

#include "passes/effects.h"
#include "passes/numbering.h"

namespace hloom::passes {
namespace {

using hlo::Opcode;

bool owns_computations(const hlo::Instruction& i) {
  return i.opcode() == Opcode::While || i.opcode() == Opcode::Conditional || i.opcode() == Opcode::Call ||
         i.opcode() == Opcode::Fusion || i.opcode() == Opcode::AsyncStart;
}

// Whether the instruction may stand for an equal one.
bool may_merge(const hlo::Instruction& i, Effects& effects) {
  if (i.opcode() == Opcode::Parameter || i.opcode() == Opcode::OptBarrier || i.opcode() == Opcode::AfterAll)
    return false;
  if (hlo::kind(i.opcode()) == hlo::OpcodeKind::Collective) return false;
  if (i.opcode() == Opcode::CopyStart || i.opcode() == Opcode::AsyncStart) return false;
  return i.control_predecessors().empty() && i.control_successors().empty() && !effects.of(i);
}

// Of each class, the first computation that nobody owns.
std::unordered_map<const hlo::Computation*, hlo::Computation*> first_applied(hlo::Module& module,
                                                                             const ComputationClasses& classes) {
  std::unordered_set<const hlo::Computation*> owned;
  for (const hlo::Computation& c : module.computations())
    for (const hlo::Instruction& i : c.instructions())
      if (owns_computations(i)) owned.insert(i.called().begin(), i.called().end());
  std::unordered_map<const hlo::Computation*, hlo::Computation*> first;
  for (hlo::Computation& c : module.computations())
    if (!owned.contains(&c)) first.try_emplace(classes.first_like(&c), &c);
  return first;
}

Changed merge_called(hlo::Module& module, const ComputationClasses& classes) {
  auto changed = Changed::No;
  const auto first = first_applied(module, classes);
  for (hlo::Computation& c : module.computations()) {
    for (hlo::Instruction& i : c.instructions()) {
      if (owns_computations(i) || i.called().empty()) continue;
      std::vector<hlo::Computation*> called;
      for (hlo::Computation* callee : i.called()) {
        const auto like = first.find(classes.first_like(callee));
        called.push_back(like == first.end() ? callee : like->second);
      }
      if (called == i.called()) continue;
      i.set_called(std::move(called));
      changed = Changed::Yes;
    }
  }
  return changed;
}

Changed merge_instructions(hlo::Computation& computation, const ComputationClasses& classes, Effects& effects) {
  auto changed = Changed::No;
  Numbering numbering(classes);
  std::unordered_map<const hlo::Instruction*, int> numbers;
  for (hlo::Instruction* i : computation.post_order()) {
    if (!may_merge(*i, effects)) {
      numbers.emplace(i, numbering.fresh());
      continue;
    }
    std::vector<int> operands;
    for (const hlo::Instruction* operand : i->operands()) operands.push_back(numbers.at(operand));
    const auto [number, first] = numbering.number(*i, std::move(operands));
    numbers.emplace(i, number);
    if (first == i || (i->users().empty() && !i->is_root())) continue;
    computation.replace_uses(i, first);
    changed = Changed::Yes;
  }
  return changed;
}

}  // namespace

Expected<Changed> cse(hlo::Module& module) {
  const ComputationClasses classes(module);
  Effects effects;
  auto changed = merge_called(module, classes);
  for (hlo::Computation& c : module.computations()) changed |= merge_instructions(c, classes, effects);
  return changed;
}

}  // namespace hloom::passes
