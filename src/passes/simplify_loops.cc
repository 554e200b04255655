#include "passes/simplify_loops.h"

#include <string>
#include <unordered_set>

#include "hlo/inline.h"
#include "passes/effects.h"
#include "passes/loop.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

// Writes a decision; none where `value` is none.
Changed decide(Instruction& i, const std::string& key, std::optional<std::int64_t> value) {
  const auto& decisions = i.annotations().decisions;
  const auto found = decisions.find(key);
  if (!value) {
    if (found == decisions.end()) return Changed::No;
    i.mutable_annotations().decisions.erase(key);
    return Changed::Yes;
  }
  if (found != decisions.end() && found->second == std::to_string(*value)) return Changed::No;
  i.mutable_annotations().decisions[key] = std::to_string(*value);
  return Changed::Yes;
}

// What stands for a loop that runs `trips` times, if that is never or once.
Instruction* unrolled(Instruction& loop, std::int64_t trips) {
  if (trips == 0) return loop.operand(0);
  if (trips == 1) return inline_computation(*loop.body(), loop.operands(), *loop.parent());
  return nullptr;
}

// The elements that read counter `c` after the loop become what it ends at.
Changed replace_final_value(Instruction& loop, const Counter& c) {
  auto changed = Changed::No;
  const std::vector<Instruction*> users = loop.users();
  for (Instruction* user : users) {
    if (!is(user, Opcode::GetTupleElement) || user->tuple_index() != c.leaf) continue;
    if (user->users().empty() && !user->is_root()) continue;
    loop.parent()->replace_uses(user, Make(*user).integer(user->shape().dtype(), c.final()));
    changed = Changed::Yes;
  }
  return changed;
}

std::optional<std::int64_t> trips_of(Instruction& loop, const std::optional<Counter>& counter) {
  if (is_false(loop.condition()->root())) return 0;
  if (counter && (counter->exact || counter->trips == 0)) return counter->trips;
  return std::nullopt;
}

using Loops = std::unordered_set<const Instruction*>;

// Adds to `gone` a loop that nothing needs any more.
Changed simplify(Instruction& instruction, Effects& effects, Loops& gone) {
  const auto loop = Loop::of(instruction);
  std::optional<Counter> counter;
  if (loop) counter = find_counter(*loop);
  const auto trips = trips_of(instruction, counter);
  auto changed = decide(instruction, "trip_count", trips);
  changed |= decide(instruction, "trip_limit", counter && !trips ? std::optional(counter->trips) : std::nullopt);
  if (!trips || effects.of(*instruction.condition())) return changed;
  const bool is_ordered = !instruction.control_predecessors().empty() || !instruction.control_successors().empty();
  if (*trips <= 1 && !is_ordered) {
    instruction.parent()->replace_uses(&instruction, unrolled(instruction, *trips));
    gone.insert(&instruction);
    return Changed::Yes;
  }
  if (counter && counter->exact) changed |= replace_final_value(instruction, *counter);
  return changed;
}

Changed simplify(hlo::Computation& computation, Effects& effects) {
  auto changed = Changed::No;
  Loops gone;
  for (Instruction* i : computation.post_order())
    if (is(i, Opcode::While)) changed |= simplify(*i, effects, gone);
  // Not left to remove_dead: a loop with a side effect would live on.
  computation.remove_all([&](const Instruction& i) { return gone.contains(&i); });
  return changed;
}

}  // namespace

Expected<Changed> simplify_loops(hlo::Module& module) {
  auto changed = Changed::No;
  Effects effects;
  for (hlo::Computation& c : module.computations()) changed |= simplify(c, effects);
  return changed;
}

}  // namespace hloom::passes
