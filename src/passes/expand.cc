#include "passes/expand.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/try.h"

namespace hloom::passes {
namespace {

// What has no operands of its own would otherwise float free of i's place; so would what has effects.
void tie_to_place_of(Instruction& i, std::int64_t first_new) {
  const std::vector<Instruction*> before = i.control_predecessors(), after = i.control_successors();
  i.drop_control_edges();
  if (before.empty() && after.empty()) return;
  std::vector<Instruction*> made;
  const auto all = i.parent()->instructions();
  for (std::int64_t n = first_new; n < i.parent()->num_instructions(); ++n)
    if (Instruction& m = all[static_cast<std::size_t>(n)]; !is(&m, Opcode::Constant)) made.push_back(&m);
  for (Instruction* m : made) {
    for (Instruction* earlier : before) m->add_control_predecessor(earlier);
    for (Instruction* later : after) later->add_control_predecessor(m);
  }
  for (Instruction* later : after)
    for (Instruction* earlier : before) later->add_control_predecessor(earlier);
}

bool same_layouts(const Shape& a, const Shape& b) {
  const auto x = leaves(a), y = leaves(b);
  for (std::size_t n = 0; n < x.size(); ++n)
    if (x[n]->is_array() && x[n]->has_layout() && y[n]->has_layout() && !(x[n]->layout() == y[n]->layout())) return false;
  return true;
}

Expected<Changed> expand_in(hlo::Computation& computation, Opcode opcode, const Expansion& expansion) {
  std::unordered_set<const Instruction*> replaced;
  for (Instruction* i : computation.post_order()) {
    if (!is(i, opcode)) continue;
    const std::int64_t first_new = computation.num_instructions();
    Instruction* with = TRY(expansion(*i));
    if (with == nullptr) continue;
    HLOOM_CHECK(compatible(i->shape(), with->shape()));
    if (!same_layouts(i->shape(), with->shape()))
      with = computation.add(Opcode::Copy, i->shape(), {with}, i->name());
    tie_to_place_of(*i, first_new);
    computation.replace_uses(i, with);
    replaced.insert(i);
  }
  computation.remove_all([&](const Instruction& i) { return replaced.contains(&i); });
  return replaced.empty() ? Changed::No : Changed::Yes;
}

}  // namespace

Expected<Changed> expand(hlo::Module& module, Opcode opcode, const Expansion& expansion) {
  // An expansion may add computations.
  std::vector<hlo::Computation*> computations;
  for (hlo::Computation& c : module.computations())
    if (std::ranges::any_of(c.instructions(), [&](const Instruction& i) { return is(&i, opcode); }))
      computations.push_back(&c);
  auto changed = Changed::No;
  for (hlo::Computation* c : computations) {
    const Changed one = TRY(expand_in(*c, opcode, expansion));
    changed |= one;
  }
  return changed;
}

}  // namespace hloom::passes
