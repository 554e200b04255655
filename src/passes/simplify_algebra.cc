#include "passes/simplify_algebra.h"

#include <algorithm>

#include "passes/make.h"
#include "passes/rewrite.h"
#include "passes/simplify_rules.h"

namespace hloom::passes {
namespace rules {

// op(spread a, spread b) is spread op(a, b): one element of work, and a scalar that loops need not compute.
Instruction* scalar_first(Instruction& i) {
  if (!hlo::is_elementwise(i.opcode()) || i.num_operands() == 0 || i.shape().rank() == 0) return nullptr;
  if (is(&i, Opcode::Copy) || !i.called().empty() || i.shape().num_elements() == 0) return nullptr;
  const auto is_spread = [](Instruction* o) { return splat_source(o) != nullptr || splat_constant(o); };
  if (!std::ranges::all_of(i.operands(), is_spread)) return nullptr;
  std::vector<Instruction*> scalars;
  for (Instruction* operand : i.operands()) {
    Instruction* scalar = splat_source(operand);
    scalars.push_back(scalar != nullptr ? scalar : Make(i).constant(*splat_constant(operand)));
  }
  Instruction* scalar = i.parent()->add_clone(i, std::move(scalars));
  scalar->set_shape(Shape::scalar(i.shape().dtype()));
  return Make(i).broadcast_scalar(scalar, i.shape().dims());
}

}  // namespace rules

namespace {

Instruction* simplify(Instruction& i) {
  if (!hlo::is_elementwise(i.opcode()) && i.opcode() != Opcode::BitcastConvert) return nullptr;
  if (!i.shape().is_array() || !is_plain(i)) return nullptr;
  for (const auto rule :
       {rules::arithmetic, rules::logic, rules::comparison, rules::selection, rules::conversion, rules::scalar_first})
    if (Instruction* with = rule(i)) return with;
  return nullptr;
}

}  // namespace

Expected<Changed> simplify_algebra(hlo::Module& module) { return rewrite(module, simplify); }

}  // namespace hloom::passes
