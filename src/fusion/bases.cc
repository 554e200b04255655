#include "fusion/bases.h"

#include <algorithm>
#include <unordered_set>

#include "fusion/cost.h"
#include "indexing/plan_window_update.h"

namespace hloom::fusion {

using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr std::size_t kMaxSearch = 2000;  // instructions looked at for one question

// Arrays that an instruction updates in place: its first operands.
std::int64_t num_bases(const Instruction& i) {
  if (i.opcode() == Opcode::DynamicUpdateSlice) return 1;
  return i.opcode() == Opcode::Scatter ? i.num_operands() / 2 : 0;
}

// Whether each element of `i`, a window of the base, goes by elementwise operations alone into the same element of the update.
bool keeps_places(const Instruction& i, const Instruction& update, std::span<Instruction* const> members) {
  std::unordered_set<const Instruction*> seen{&i};
  std::vector<const Instruction*> open{&i};
  while (!open.empty()) {
    const Instruction* at = open.back();
    open.pop_back();
    for (const Instruction* user : at->users()) {
      if (std::ranges::find(members, user) == members.end()) continue;
      if (user == &update) {
        if (update.operand(1) != at || std::ranges::count(update.operands(), at) != 1) return false;
        continue;
      }
      if (!hlo::is_elementwise(user->opcode()) || !user->called().empty() || !same_dims(user->shape(), i.shape())) return false;
      if (seen.insert(user).second) open.push_back(user);
    }
  }
  return true;
}

}  // namespace

void split_free_bases(hlo::Computation& c) {
  for (Instruction* i : c.post_order())
    for (std::int64_t k = 0; k < num_bases(*i); ++k) {
      Instruction* base = i->operand(k);
      if (base->opcode() == Opcode::Constant || !is_free(*base) || base->users().size() == 1) continue;
      i->replace_operand(k, c.add_clone(*base, base->operands()));
    }
}

Bases::Bases(const std::vector<Instruction*>& order) {
  for (std::size_t n = 0; n < order.size(); ++n) {
    position_[order[n]] = n;
    for (std::int64_t k = 0; k < num_bases(*order[n]); ++k) updates_[order[n]->operand(k)].push_back(order[n]);
  }
}

bool Bases::are_read_late(const Instruction& i, const Instruction& update, std::span<Instruction* const> members) const {
  return std::ranges::any_of(i.operands(), [&](const Instruction* o) {
    const auto updates = updates_.find(o);
    if (updates == updates_.end()) return false;
    const bool is_own = std::ranges::find(updates->second, &update) != updates->second.end();
    if (is_own) return updates->second.size() != 1 || !indexing::stands_at(i, update) || !keeps_places(i, update, members);
    return !std::ranges::all_of(updates->second, [&](const Instruction* other) { return comes_after(*other, update); });
  });
}

// Whether `later` uses what `update` gives, however indirectly.
bool Bases::comes_after(const Instruction& later, const Instruction& update) const {
  const std::size_t last = position_.at(&later);
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> open{&update};
  while (!open.empty() && seen.size() < kMaxSearch) {
    const Instruction* at = open.back();
    open.pop_back();
    if (at == &later) return true;
    for (const Instruction* user : at->users()) {
      const auto place = position_.find(user);
      if (place != position_.end() && place->second <= last && seen.insert(user).second) open.push_back(user);
    }
  }
  return false;
}

}  // namespace hloom::fusion
