#include "passes/lift_constants.h"

#include <algorithm>
#include <vector>

#include "passes/match.h"

namespace hloom::passes {
namespace {

using hlo::Computation;

// A kernel makes what has one value for all its elements.
bool is_read_from_memory(const Instruction& i) {
  if (!is(&i, Opcode::Constant) || !i.shape().is_array()) return false;
  return i.shape().num_elements() == 0 || !hlo::is_splat(i.literal());
}

bool holds_array(const Instruction& fusion) {
  return std::ranges::any_of(fusion.called(0)->instructions(), is_read_from_memory);
}

void lift_from(Instruction& fusion) {
  Computation& body = *fusion.called(0);
  for (Instruction* inside : body.post_order()) {
    if (!is_read_from_memory(*inside)) continue;
    fusion.append_operand(fusion.parent()->add_clone(*inside, {}, inside->name()));
    body.replace_uses(inside, body.add_parameter(fusion.num_operands() - 1, inside->shape(), inside->name()));
    inside->drop_control_edges();
    body.remove(inside);
  }
  body.sort();
}

}  // namespace

Expected<Changed> lift_constants(hlo::Module& module) {
  std::vector<Instruction*> fusions;
  for (Computation& c : module.computations())
    for (Instruction& i : c.instructions())
      if (is(&i, Opcode::Fusion) && holds_array(i)) fusions.push_back(&i);
  for (Instruction* fusion : fusions) {
    lift_from(*fusion);
    fusion->parent()->sort();
  }
  return fusions.empty() ? Changed::No : Changed::Yes;
}

}  // namespace hloom::passes
