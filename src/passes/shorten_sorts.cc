#include "passes/shorten_sorts.h"

#include <algorithm>
#include <set>
#include <vector>

#include "hlo/sort_form.h"
#include "passes/match.h"

namespace hloom::passes {
namespace {

// The slices that read a sort, if nothing else does and all keep the same places.
std::vector<Instruction*> slices_of(const Instruction& sort) {
  std::vector<Instruction*> slices;
  const auto add_users = [&](const Instruction& of) {
    slices.insert(slices.end(), of.users().begin(), of.users().end());
    return !of.is_root();
  };
  if (sort.shape().is_array()) {
    if (!add_users(sort)) return {};
  } else {
    if (sort.is_root()) return {};
    for (const Instruction* element : sort.users())
      if (!is(element, Opcode::GetTupleElement) || !add_users(*element)) return {};
  }
  std::optional<hlo::SortForm> all;
  for (const Instruction* slice : slices) {
    const auto form = hlo::sliced_sort(*slice);
    if (!form || form->kept == slice->operand(0)->shape().dim(form->dimension)) return {};
    if (all && (all->first != form->first || all->kept != form->kept)) return {};
    all = form;
  }
  return slices;
}

bool has_control(const Instruction& i) { return !i.control_predecessors().empty() || !i.control_successors().empty(); }

void fuse(Instruction& sort, const std::vector<Instruction*>& slices) {
  hlo::Computation& c = *sort.parent();
  hlo::Computation* fused = c.module().add_computation("shortened_sort");
  std::vector<Instruction*> operands(sort.operands().begin(), sort.operands().end()), parameters, results;
  for (std::size_t k = 0; k < operands.size(); ++k)
    parameters.push_back(fused->add_parameter(static_cast<std::int64_t>(k), operands[k]->shape(), "p"));
  Instruction* inside = fused->add_clone(sort, parameters);
  for (const Instruction* slice : slices) {
    Instruction* from = inside;
    if (is(slice->operand(0), Opcode::GetTupleElement)) from = fused->add_clone(*slice->operand(0), {inside});
    results.push_back(fused->add_clone(*slice, {from}));
  }
  Instruction* root = results.size() == 1 ? results[0] : fused->add_tuple(results);
  fused->set_root(root);
  Instruction* fusion = c.add(Opcode::Fusion, root->shape(), operands, sort.name() + "_first");
  fusion->set_called({fused});
  fusion->mutable_attr<hlo::FusionAttr>().kind = hlo::FusionKind::Custom;
  fusion->mutable_annotations().metadata = sort.annotations().metadata;
  for (std::size_t k = 0; k < slices.size(); ++k)
    c.replace_uses(slices[k], slices.size() == 1 ? fusion : c.add_get_tuple_element(fusion, static_cast<std::int64_t>(k)));
}

}  // namespace

Expected<Changed> shorten_sorts(hlo::Module& module) {
  std::vector<Instruction*> sorts;
  std::set<const hlo::Computation*> fused;
  for (hlo::Computation& c : module.computations())
    for (Instruction& i : c.instructions()) {
      if (is(&i, Opcode::Fusion)) fused.insert(i.called(0));
      if (is(&i, Opcode::Sort)) sorts.push_back(&i);
    }
  std::erase_if(sorts, [&](const Instruction* sort) { return fused.contains(sort->parent()); });
  Changed changed = Changed::No;
  for (Instruction* sort : sorts) {
    const std::vector<Instruction*> slices = slices_of(*sort);
    if (slices.empty() || has_control(*sort) || std::ranges::any_of(slices, [](const Instruction* s) { return has_control(*s); })) continue;
    hlo::Computation& c = *sort->parent();
    fuse(*sort, slices);
    c.sort();
    changed = Changed::Yes;
  }
  return changed;
}

}  // namespace hloom::passes
