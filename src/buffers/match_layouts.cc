#include "buffers/match_layouts.h"

#include <map>

#include "base/fail.h"
#include "base/try.h"
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

Expected<> want_same_layouts(const Instruction& i, const Instruction& inside) {
  const auto a = leaves(i.shape()), b = leaves(inside.shape());
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!same_storage(*a[k], *b[k]))
      return fail(Code::InvalidArgument, i.name(), ": leaf ", k, " is ", to_string(*a[k]), ", but ", inside.name(),
                  " has ", to_string(*b[k]));
  return {};
}

Expected<> match(Instruction& i, OrderEdits& edits) {
  switch (i.opcode()) {
    case Opcode::While:
      TRY(want_same_layouts(i, *i.condition()->parameter(0)));
      TRY(want_same_layouts(i, *i.body()->parameter(0)));
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
  return {};
}

}  // namespace

Expected<> match_layouts(hlo::Module& module) {
  OrderEdits edits;
  for (Computation* c : step_computations(module)) {
    std::vector<Instruction*> present;
    for (Instruction& i : c->instructions()) present.push_back(&i);
    for (Instruction* i : present) TRY(match(*i, edits));
  }
  edits.apply();
  return {};
}

}  // namespace hloom::buffers
