#include "passes/order.h"

#include <algorithm>

namespace hloom::passes {
namespace {

bool is_in_order(const hlo::Computation& computation) {
  std::unordered_set<const hlo::Instruction*> seen;
  seen.reserve(static_cast<std::size_t>(computation.num_instructions()));
  const auto was_seen = [&](const hlo::Instruction* i) { return seen.contains(i); };
  for (const hlo::Instruction& i : computation.instructions()) {
    if (!std::ranges::all_of(i.operands(), was_seen) || !std::ranges::all_of(i.control_predecessors(), was_seen))
      return false;
    seen.insert(&i);
  }
  return true;
}

}  // namespace

void restore_order(hlo::Computation& computation) {
  if (!is_in_order(computation)) computation.sort();
}

void restore_order(hlo::Module& module) {
  for (hlo::Computation& c : module.computations()) restore_order(c);
  module.sort();
}

}  // namespace hloom::passes
