#include "buffers/match_layouts.h"

#include <map>

#include "buffers/leaf.h"
#include "buffers/order_edits.h"
#include "buffers/steps.h"
#include "buffers/values.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// `whole` with its leaves copied to the layouts of `wanted` where they differ.
Instruction* in_layouts(Instruction* whole, const Shape& wanted, Added& added) {
  const auto from = leaves(whole->shape()), to = leaves(wanted);
  std::vector<std::pair<std::int64_t, Shape>> differing;
  for (std::size_t k = 0; k < from.size(); ++k)
    if (!same_storage(*from[k], *to[k])) differing.emplace_back(static_cast<std::int64_t>(k), *to[k]);
  std::map<std::int64_t, Instruction*> replacements;
  for (const auto& [leaf, shape] : differing) {
    Instruction* source = leaf_of(whole, leaf, added);
    Instruction* copy = source->parent()->add(Opcode::Copy, shape, {source}, "layout." + source->name());
    added.push_back(copy);
    replacements.emplace(leaf, copy);
  }
  return with_leaves(whole, replacements, added);
}

void match_operand(Instruction& i, std::int64_t operand, const Shape& wanted, OrderEdits& edits) {
  Added added;
  Instruction* matched = in_layouts(i.operand(operand), wanted, added);
  if (added.empty()) return;
  i.replace_operand(operand, matched);
  edits.insert_before(i, added);
}

// Gives `i` the layouts of `wanted`; who reads it in those that it had reads a copy.
void give_layouts(Instruction& i, const Shape& wanted, OrderEdits& edits) {
  const Shape had = i.shape();
  const bool was_root = i.is_root();
  const std::vector<Instruction*> users = i.users();
  i.set_shape(wanted);
  Added added;
  Instruction* as_before = in_layouts(&i, had, added);
  if (added.empty()) return;
  for (Instruction* user : users)
    for (std::int64_t k = 0; k < user->num_operands(); ++k)
      if (user->operand(k) == &i) user->replace_operand(k, as_before);
  if (was_root) i.parent()->set_root(as_before);
  edits.insert_after(i, added);
}

void match(Instruction& i, OrderEdits& edits) {
  switch (i.opcode()) {
    case Opcode::While:
      give_layouts(i, i.body()->parameter(0)->shape(), edits);
      give_layouts(*i.condition()->parameter(0), i.body()->parameter(0)->shape(), edits);
      break;
    case Opcode::Conditional:
      for (std::size_t k = 0; k < i.called().size(); ++k)
        match_operand(i, static_cast<std::int64_t>(k) + 1, i.called()[k]->parameter(0)->shape(), edits);
      break;
    case Opcode::Call: {
      for (std::int64_t k = 0; k < i.num_operands(); ++k)
        match_operand(i, k, i.to_apply()->parameter(k)->shape(), edits);
      Added added;
      i.to_apply()->set_root(in_layouts(i.to_apply()->root(), i.shape(), added));
      edits.append(*i.to_apply(), added);
      break;
    }
    default: break;
  }
}

}  // namespace

void match_layouts(hlo::Module& module) {
  OrderEdits edits;
  for (Computation* c : step_computations(module)) {
    std::vector<Instruction*> present;
    for (Instruction& i : c->instructions()) present.push_back(&i);
    for (Instruction* i : present) match(*i, edits);
  }
  edits.apply();
}

}  // namespace hloom::buffers
