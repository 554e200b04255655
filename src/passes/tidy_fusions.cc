#include "passes/tidy_fusions.h"

#include <string>
#include <unordered_set>
#include <vector>

#include "passes/order.h"

namespace hloom::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

void remove_unused(Computation& body) {
  body.remove_all([](const Instruction& i) {
    return i.users().empty() && !i.is_root() && i.opcode() != Opcode::Parameter && !hlo::has_side_effect(i);
  });
}

bool is_unused(const Instruction& parameter) { return parameter.users().empty() && !parameter.is_root(); }

// Puts the fusion without the operands that its computation does not read in its place.
void drop_operands(Instruction& fusion) {
  Computation& body = *fusion.called(0);
  std::vector<Instruction*> kept;
  for (Instruction* p : body.parameters())
    if (!is_unused(*p)) kept.push_back(fusion.operand(p->parameter_number()));
  if (kept.size() == fusion.operands().size()) return;
  body.remove_all([](const Instruction& i) { return i.opcode() == Opcode::Parameter && is_unused(i); });
  Computation& around = *fusion.parent();
  Instruction* smaller = around.add_clone(fusion, std::move(kept));
  for (Instruction* before : std::vector<Instruction*>(fusion.control_predecessors()))
    smaller->add_control_predecessor(before);
  for (Instruction* after : std::vector<Instruction*>(fusion.control_successors()))
    after->add_control_predecessor(smaller);
  around.replace_uses(&fusion, smaller);
  const std::string name = fusion.name();
  fusion.drop_control_edges();
  around.remove(&fusion);
  around.module().rename(*smaller, name);
}

}  // namespace

void tidy_fusions(hlo::Module& module) {
  restore_order(module);
  std::vector<Instruction*> fusions;
  for (Computation& c : module.computations())
    for (Instruction& i : c.instructions())
      if (i.opcode() == Opcode::Fusion) fusions.push_back(&i);
  if (fusions.empty()) return;
  std::unordered_set<const Computation*> taken;
  for (Instruction* fusion : fusions) {
    if (!taken.insert(fusion->called(0)).second)
      fusion->set_called({module.clone_computation(*fusion->called(0), fusion->called(0)->name())});
    remove_unused(*fusion->called(0));
    if (fusion->attr<hlo::FusionAttr>().aliasing.empty()) drop_operands(*fusion);
  }
  restore_order(module);
}

}  // namespace hloom::passes
