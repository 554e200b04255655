#include "passes/inline_calls.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/inline.h"

namespace hloom::passes {
namespace {

// How many instructions computations have once all they call stands in them; so many calls can name one computation
// that the number is exponential, so it stops at the limit.
class Sizes {
 public:
  std::int64_t of(const hlo::Computation& c) {
    const auto known = known_.find(&c);
    if (known != known_.end()) return known->second;
    std::int64_t size = c.num_instructions();
    for (const hlo::Instruction& i : c.instructions())
      for (const hlo::Computation* callee : i.called()) size = std::min(size + of(*callee), kMaxInlined + 1);
    known_.emplace(&c, size);
    return size;
  }

 private:
  std::unordered_map<const hlo::Computation*, std::int64_t> known_;
};

bool is_inlined(const hlo::Instruction& i) {
  if (i.opcode() != hlo::Opcode::Call) return false;
  const std::string& thread = i.to_apply()->execution_thread();
  return thread == i.parent()->execution_thread();
}

void inline_call(hlo::Instruction& call) {
  hlo::Computation& caller = *call.parent();
  hlo::Instruction* result = inline_computation(*call.to_apply(), call.operands(), caller, call.control_predecessors(),
                                                call.control_successors());
  caller.replace_uses(&call, result);
  call.drop_control_edges();
}

Changed inline_calls_in(hlo::Computation& caller) {
  std::unordered_set<const hlo::Instruction*> calls;
  for (hlo::Instruction* i : caller.post_order()) {
    if (!is_inlined(*i)) continue;
    inline_call(*i);
    calls.insert(i);
  }
  // Not left to remove_dead: a call with a side effect would live on.
  caller.remove_all([&](const hlo::Instruction& i) { return calls.contains(&i); });
  return calls.empty() ? Changed::No : Changed::Yes;
}

bool has_own_computations(hlo::Opcode opcode) {
  return opcode == hlo::Opcode::While || opcode == hlo::Opcode::Conditional || opcode == hlo::Opcode::Call;
}

// Computations that some instruction applies, which may be any number's.
std::unordered_set<const hlo::Computation*> applied_computations(const hlo::Module& module) {
  std::unordered_set<const hlo::Computation*> applied;
  for (const hlo::Computation& c : module.computations())
    for (const hlo::Instruction& i : c.instructions())
      if (!has_own_computations(i.opcode())) applied.insert(i.called().begin(), i.called().end());
  return applied;
}

Changed unshare(hlo::Module& module) {
  auto changed = module.remove_unreachable() > 0 ? Changed::Yes : Changed::No;
  std::unordered_set<const hlo::Computation*> taken = applied_computations(module);
  module.sort();
  std::vector<hlo::Computation*> order;
  for (hlo::Computation& c : module.computations()) order.push_back(&c);
  std::ranges::reverse(order);  // callers first, so that what a copy calls is seen to be shared
  // Grows while it is walked: copies come after what calls them.
  for (std::size_t n = 0; n < order.size(); ++n) {
    for (hlo::Instruction& i : order[n]->instructions()) {
      if (!has_own_computations(i.opcode())) continue;
      std::vector<hlo::Computation*> called = i.called();
      for (hlo::Computation*& callee : called) {
        if (taken.insert(callee).second) continue;
        callee = module.clone_computation(*callee, callee->name());
        taken.insert(callee);
        order.push_back(callee);
        changed = Changed::Yes;
      }
      i.set_called(std::move(called));
    }
  }
  return changed;
}

}  // namespace

Expected<Changed> inline_calls(hlo::Module& module) {
  if (Sizes().of(*module.entry()) > kMaxInlined) return Changed::No;
  auto changed = Changed::No;
  module.sort();  // callees have no calls left when their callers copy them
  std::vector<hlo::Computation*> order;
  for (hlo::Computation& c : module.computations()) order.push_back(&c);
  for (hlo::Computation* c : order) changed |= inline_calls_in(*c);
  return changed | unshare(module);
}

}  // namespace hloom::passes
