#include "buffers/split_fills.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "buffers/in_place.h"
#include "buffers/steps.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kMostInstructions = 8;  // of what is still cheap to make

bool is_fill(const Instruction& i) {
  if (i.opcode() != Opcode::Fusion || !i.shape().is_array() || i.shape().rank() == 0) return false;
  const auto is_scalar = [](const Instruction* o) { return o->shape().is_array() && o->shape().rank() == 0; };
  if (!std::ranges::all_of(i.operands(), is_scalar)) return false;
  std::int64_t count = 0;
  for (const Instruction& inner : i.called().front()->instructions()) {
    const bool is_cheap = inner.opcode() == Opcode::Parameter || inner.opcode() == Opcode::Constant ||
                          inner.opcode() == Opcode::Broadcast || inner.opcode() == Opcode::Iota ||
                          inner.opcode() == Opcode::Convert || inner.opcode() == Opcode::Add ||
                          inner.opcode() == Opcode::Compare || inner.opcode() == Opcode::Select;
    if (!is_cheap || ++count > kMostInstructions) return false;
  }
  return true;
}

bool is_loop_state(const Instruction& tuple) {
  return tuple.opcode() == Opcode::Tuple &&
         std::ranges::any_of(tuple.users(), [](const Instruction* u) { return u->opcode() == Opcode::While; });
}

// The operands of `user` that are `fill` and are written over.
std::vector<std::int64_t> written(const Instruction& user, const Instruction& fill) {
  std::vector<std::int64_t> result;
  const auto pairs = is_loop_state(user) ? std::vector<InPlacePair>() : in_place_pairs(user);
  for (std::int64_t n = 0; n < user.num_operands(); ++n)
    if (user.operand(n) == &fill &&
        (is_loop_state(user) || std::ranges::find(pairs, n, &InPlacePair::operand) != pairs.end()))
      result.push_back(n);
  return result;
}

void split(hlo::Module& module, Instruction& fill) {
  bool is_taken = false;
  const std::vector<Instruction*> users = fill.users();  // a copy: it changes, and has a user once for each operand
  std::unordered_set<const Instruction*> seen;
  for (Instruction* user : users)
    for (const std::int64_t n : seen.insert(user).second ? written(*user, fill) : std::vector<std::int64_t>()) {
      if (!std::exchange(is_taken, true)) continue;
      Instruction* again = fill.parent()->add_clone(fill, fill.operands());
      const Computation& body = *fill.called().front();
      again->set_called({module.clone_computation(body, body.name())});
      user->replace_operand(n, again);
    }
}

}  // namespace

void split_fills(hlo::Module& module) {
  if (module.config().is_scheduled) return;
  for (Computation* c : step_computations(module)) {
    std::vector<Instruction*> fills;
    for (Instruction& i : c->instructions())
      if (i.users().size() > 0 && is_fill(i)) fills.push_back(&i);
    for (Instruction* fill : fills) split(module, *fill);
    if (!fills.empty()) c->sort();
  }
}

}  // namespace hloom::buffers
