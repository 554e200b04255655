// As in form_rows.cc, a value's level of history counts how often it has left the group and come back. What hangs together at
// one count cannot wait for itself; whether it does through other groups is asked before it is taken.
#include "fusion/form_levels.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "fusion/cost.h"
#include "fusion/fuse.h"

namespace hloom::fusion {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr std::size_t kMaxMembers = 800;  // instructions in a kernel
constexpr std::size_t kMaxSpaces = 16;
constexpr std::size_t kMaxGroups = 64;
constexpr std::ptrdiff_t kMaxResults = 2;  // all are alive at once, where levels by themselves are made when they are wanted
constexpr std::size_t kFewExtents = 3;    // along the lines, of what is kept: with fewer there are hardly levels

class LevelFormer {
 public:
  LevelFormer(Computation& c, const std::vector<RowGroup>& rows) : order_(c.post_order()) {
    for (std::size_t n = 0; n < order_.size(); ++n) position_[order_[n]] = n;
    owner_.assign(order_.size(), 0);
    for (const RowGroup& group : rows) own(group.members);
  }

  std::vector<LevelGroup> run() {
    std::vector<LevelSpace> spaces;
    for (const Instruction* i : order_)
      if (const auto space = level_space(*i); space && may_join(*i) && std::ranges::find(spaces, *space) == spaces.end()) {
        spaces.push_back(*space);
        if (spaces.size() == kMaxSpaces) break;
      }
    for (const LevelSpace& space : spaces) form(space);
    return std::move(groups_);
  }

 private:
  void own(const std::vector<Instruction*>& members) {
    taken_.push_back(members);
    for (const Instruction* i : members) owner_[position_.at(i)] = taken_.size();
  }

  bool may_join(const Instruction& i) const {
    if (owner_[position_.at(&i)] != 0 || is_free(i) || is_structural(i) || hlo::has_side_effect(i)) return false;
    if (!i.control_predecessors().empty() || !i.control_successors().empty()) return false;
    return hlo::is_elementwise(i.opcode()) ? i.opcode() != Opcode::Copy : i.opcode() == Opcode::Slice || is_of_pieces(i);
  }

  bool is_tied(const Instruction& i, const LevelSpace& space) const {
    return may_join(i) && lies_in(i.shape(), space) && (hlo::is_elementwise(i.opcode()) || moves_along(i, space));
  }

  void form(const LevelSpace& space) {
    std::vector<char> tied(order_.size());
    std::vector<int> history(order_.size(), 0);
    std::vector<std::size_t> leader(order_.size());
    std::iota(leader.begin(), leader.end(), std::size_t{0});
    const auto find = [&](std::size_t n) {
      while (leader[n] != n) n = leader[n] = leader[leader[n]];
      return n;
    };
    for (std::size_t n = 0; n < order_.size(); ++n) {
      const Instruction& i = *order_[n];
      tied[n] = is_tied(i, space) ? 1 : 0;
      const auto stays = [&](std::int64_t k) { return tied[n] != 0 && tied[position_.at(i.operand(k))] != 0 && stays_in_line(i, k, space); };
      for (std::int64_t k = 0; k < i.num_operands(); ++k) {
        const std::size_t o = position_.at(i.operand(k));
        history[n] = std::max(history[n], history[o] + (tied[o] != 0 && !stays(k) ? 1 : 0));
      }
      for (const Instruction* b : i.control_predecessors()) history[n] = std::max(history[n], history[position_.at(b)]);
      for (std::int64_t k = 0; k < i.num_operands(); ++k)
        if (const std::size_t o = position_.at(i.operand(k)); stays(k) && history[o] == history[n]) leader[find(o)] = find(n);
    }
    std::unordered_map<std::size_t, std::vector<Instruction*>> parts;
    std::vector<std::size_t> in_order;
    for (std::size_t n = 0; n < order_.size(); ++n) {
      if (tied[n] == 0) continue;
      std::vector<Instruction*>& part = parts[find(n)];
      if (part.empty()) in_order.push_back(find(n));
      part.push_back(order_[n]);
    }
    for (const std::size_t p : in_order) consider(core(parts.at(p), space), space);
  }

  // What lies between changes of level, and what is made of such alone.
  static std::vector<Instruction*> core(const std::vector<Instruction*>& part, const LevelSpace& space) {
    std::unordered_set<const Instruction*> before, kept;
    for (auto at = part.rbegin(); at != part.rend(); ++at) {
      const Instruction* i = *at;
      if (moves_along(*i, space) || std::ranges::any_of(i->users(), [&](const Instruction* u) { return before.contains(u); })) before.insert(i);
    }
    std::vector<Instruction*> members;
    for (Instruction* i : part) {
      const auto is_in = [&](const Instruction* o) { return kept.contains(o); };
      const bool after = std::ranges::any_of(i->operands(), is_in);
      const bool of_such = after && std::ranges::all_of(i->operands(), [&](const Instruction* o) { return is_in(o) || is_free(*o); });
      if (!moves_along(*i, space) && !(after && before.contains(i)) && !of_such) continue;
      kept.insert(i);
      members.push_back(i);
    }
    return members;
  }

  void consider(std::vector<Instruction*> members, const LevelSpace& space) {
    std::set<std::int64_t> extents;
    for (const Instruction* i : members)
      if (is_kept_level(*i) && hlo::is_elementwise(i->opcode())) extents.insert(i->shape().dim(static_cast<std::int64_t>(space.along)));
    std::size_t changes = 0;
    for (const Instruction* i : members) changes += level_space(*i) == space ? 1 : 0;
    if (changes < 2 * kFewExtents || !has_levels(members, extents.size())) return;
    if (const std::string reason = objection(members, space); !reason.empty()) {
      members.front()->mutable_annotations().decisions["not_levels"] = reason;
      return;
    }
    own(members);
    groups_.push_back({space, std::move(members)});
  }

  // Levels of halves have an extent each; those of doubled distances keep theirs, and are as many values read twice.
  static bool has_levels(const std::vector<Instruction*>& members, std::size_t extents) {
    const auto kept = std::ranges::count_if(members, [](const Instruction* i) { return is_kept_level(*i); });
    return extents >= kFewExtents || kept >= static_cast<std::ptrdiff_t>(kFewExtents);
  }

  std::string objection(const std::vector<Instruction*>& members, const LevelSpace& space) const {
    if (members.size() > kMaxMembers || groups_.size() == kMaxGroups) return "the kernel would be large";
    const std::unordered_set<const Instruction*> inside(members.begin(), members.end());
    const auto leaves = [&](const Instruction* i) {
      return i->is_root() || std::ranges::any_of(i->users(), [&](const Instruction* u) { return !inside.contains(u); });
    };
    if (std::ranges::count_if(members, leaves) > kMaxResults) return "many of its levels are needed outside";
    std::unordered_set<const Instruction*> seen;
    std::vector<const Instruction*> outside;
    for (const Instruction* i : members)
      for (const Instruction* o : i->operands())
        if (!inside.contains(o) && seen.insert(o).second) outside.push_back(o);
    if (!level_lanes(space, {members.begin(), members.end()}, outside, members.back()->shape()).fits) return "lines are too long to stay near, or too few";
    return waits_for_itself(members, inside) ? "it would wait for itself" : "";
  }

  // Whether a way leaves the members and comes back; groups that are there are each one thing.
  bool waits_for_itself(const std::vector<Instruction*>& members, const std::unordered_set<const Instruction*>& inside) const {
    std::vector<char> seen(order_.size(), 0);
    std::vector<std::size_t> open;
    bool back = false;
    const auto visit = [&](const Instruction* i) {
      const auto found = position_.find(i);
      if (found == position_.end() || seen[found->second] != 0) return;
      seen[found->second] = 1;
      open.push_back(found->second);
    };
    const auto leave = [&](const Instruction& from) {
      for (const Instruction* u : from.users()) visit(u);
      for (const Instruction* u : from.control_successors()) visit(u);
    };
    for (const Instruction* i : members)
      for (const Instruction* u : i->users())
        if (!inside.contains(u)) visit(u);
    while (!open.empty() && !back) {
      const std::size_t n = open.back();
      open.pop_back();
      back = inside.contains(order_[n]);
      leave(*order_[n]);
      if (owner_[n] != 0)
        for (const Instruction* same : taken_[owner_[n] - 1]) visit(same);
    }
    return back;
  }

  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, std::size_t> position_;
  std::vector<std::vector<Instruction*>> taken_;
  std::vector<std::size_t> owner_;  ///< by position: 1 + the place in taken_, or 0
  std::vector<LevelGroup> groups_;
};

}  // namespace

std::vector<LevelGroup> form_levels(Computation& c, const std::vector<RowGroup>& rows) { return LevelFormer(c, rows).run(); }

}  // namespace hloom::fusion
