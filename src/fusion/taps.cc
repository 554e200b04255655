#include "fusion/taps.h"

#include <algorithm>

#include "fusion/cost.h"

namespace hloom::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool keeps_its_kernel(const Computation& body) {
  return std::ranges::any_of(body.instructions(), [](const Instruction& i) {
    const Hero hero = hero_of(i);
    return hero == Hero::Dot || hero == Hero::Convolution || hero == Hero::Routine || hero == Hero::Scatter ||
           hero == Hero::Window;
  });
}

bool worth_a_tap(const Instruction& i) {
  return i.opcode() != Opcode::Parameter && i.opcode() != Opcode::Tuple && i.opcode() != Opcode::GetTupleElement &&
         i.shape().is_array() && i.shape().num_elements() > 0 && !is_free(i);
}

void tap(Instruction& fusion) {
  Computation& body = *fusion.called(0);
  Instruction* root = body.root();
  const bool single = root->opcode() != Opcode::Tuple;
  std::vector<Instruction*> results = single ? std::vector{root} : root->operands();
  for (Instruction& i : body.instructions())
    if (worth_a_tap(i) && std::ranges::find(results, &i) == results.end()) results.push_back(&i);
  if (results.size() == 1) return;
  Instruction* tuple = body.add_tuple(results, "taps");
  body.set_root(tuple);
  if (!single) body.remove(root);
  Computation& outer = *fusion.parent();
  if (single) {
    // Users read the first element from now on.
    Instruction* tapped = outer.add_clone(fusion, fusion.operands(), fusion.name());
    tapped->set_shape(tuple->shape());
    for (Instruction* before : fusion.control_predecessors()) tapped->add_control_predecessor(before);
    for (Instruction* after : fusion.control_successors()) after->add_control_predecessor(tapped);
    fusion.drop_control_edges();
    outer.replace_uses(&fusion, outer.add_get_tuple_element(tapped, 0));
    outer.remove(&fusion);
  } else {
    fusion.set_shape(tuple->shape());
  }
}

}  // namespace

void add_taps(hlo::Module& module) {
  for (Computation& c : module.computations()) {
    std::vector<Instruction*> fusions;
    for (Instruction& i : c.instructions())
      if (i.opcode() == Opcode::Fusion && !keeps_its_kernel(*i.called(0))) fusions.push_back(&i);
    for (Instruction* fusion : fusions) tap(*fusion);
    if (!fusions.empty()) c.sort();
  }
}

std::vector<const Instruction*> results_of(const Instruction& fusion) {
  const Instruction* root = fusion.called(0)->root();
  if (root->opcode() != Opcode::Tuple) return {root};
  return {root->operands().begin(), root->operands().end()};
}

}  // namespace hloom::fusion
