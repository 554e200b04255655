// A value's level counts how often its history has left the group and come back. Within one level nothing can, so tied
// instructions of one level are safe to put into one kernel; levels are counted over groups made before as over single
// instructions.
#include "fusion/form_rows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>

#include "fusion/column_sums.h"
#include "fusion/cost.h"
#include "fusion/fuse.h"

namespace hloom::fusion {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr std::int64_t kBudget = 40'000'000;       // instructions looked at in one computation
constexpr std::size_t kMaxMembers = 110;           // instructions in a group; what makes their operands joins later
constexpr std::int64_t kLongRow = 512 * 1024;        // bytes of a row of which there should be several
constexpr std::int64_t kFewRows = 8;
constexpr std::int64_t kNearBytes = 1 << 20;       // of columns that are walked together: they have to stay near
constexpr std::int64_t kSumsBytes = 128 * 1024;    // of sums over rows, which each row goes through
constexpr std::int64_t kOneBlock = 64 * 1024;      // bytes of rows that need not be shared out
constexpr std::int64_t kFewBlocks = 8;
constexpr std::size_t kMaxColumnSums = 4;
constexpr std::size_t kMaxSteps = 2000;            // looked at for one question about cycles

class RowFormer {
 public:
  explicit RowFormer(Computation& c) : order_(c.post_order()) {
    for (std::size_t n = 0; n < order_.size(); ++n) position_[order_[n]] = n;
    owner_.resize(order_.size());
    std::iota(owner_.begin(), owner_.end(), std::size_t{0});
    nodes_.resize(order_.size());
    for (std::size_t n = 0; n < order_.size(); ++n) nodes_[n] = {order_[n]};
  }

  std::vector<RowGroup> run() {
    for (Instruction* i : order_)
      if (i->opcode() == Opcode::Reduce && !seen_.contains(i) && worth_a_look(*i)) form(*i);
    for (RowGroup& group : groups_) take_column_sums(group);
    return std::move(groups_);
  }

 private:
  // Rows of a few elements are no work for passes: their sums are computed where they are needed.
  static bool worth_a_look(const Instruction& i) { return !is_unrolled(i) && row_space(i).has_value(); }

  bool may_join(const Instruction& i) const {
    if (!position_.contains(&i) || is_grouped(i) || is_free(i) || is_structural(i)) return false;
    if (!i.control_predecessors().empty() || !i.control_successors().empty() || hlo::has_side_effect(i)) return false;
    switch (i.opcode()) {
      case Opcode::Broadcast:
      case Opcode::Bitcast:
      case Opcode::Reduce:
      case Opcode::Reshape: return true;
      case Opcode::Copy: return false;
      default: return hlo::is_elementwise(i.opcode());
    }
  }

  bool is_grouped(const Instruction& i) const { return grouped_.contains(&i); }
  std::size_t node_of(const Instruction* i) const { return owner_[position_.at(i)]; }

  void form(Instruction& seed) {
    const RowSpace space = *row_space(seed);
    const Extents extents = tied_extents({&seed}, space, [&](const Instruction& i) { return may_join(i); });
    for (const auto& [i, extent] : extents)
      if (i->opcode() == Opcode::Reduce) seen_.insert(i);
    spent_ += static_cast<std::int64_t>(order_.size());
    if (spent_ > kBudget) {
      refuse(seed, "enough has been looked at");
      return;
    }
    const auto level = levels(extents, space);
    const std::size_t before = groups_.size();
    std::vector<Instruction*> tied;
    for (const auto& [i, extent] : extents) tied.push_back(order_[position_.at(i)]);
    // What is dropped may have been all that held a part together.
    for (const std::vector<Instruction*>& part : parts(std::move(tied), extents, level, space))
      for (std::vector<Instruction*>& kept : parts(keep(part), extents, level, space)) consider(std::move(kept), extents, space);
    if (groups_.size() > before) merge(before);
  }

  // Whether `user`'s read of operand k stays in its row, in the extents found.
  static bool is_tied(const Extents& extents, const RowSpace& space, const Instruction& user, std::int64_t k) {
    const auto own = extents.find(&user), operand = extents.find(user.operand(k));
    return own != extents.end() && operand != extents.end() &&
           operand_extent(user, own->second, k, space) == operand->second;
  }

  // By position for tied instructions.
  std::vector<int> levels(const Extents& extents, const RowSpace& space) const {
    std::vector<int> level(order_.size(), 0), outside(order_.size(), 0);
    for (const std::size_t n : node_order_.empty() ? all_nodes() : node_order_) {
      int highest = 0;
      for (const Instruction* i : nodes_[n]) {
        const bool inside = extents.contains(i);
        for (std::int64_t k = 0; k < i->num_operands(); ++k) {
          const Instruction* o = i->operand(k);
          if (!extents.contains(o))
            highest = std::max(highest, outside[node_of(o)]);
          else
            highest = std::max(highest, level[position_.at(o)] + (inside && is_tied(extents, space, *i, k) ? 0 : 1));
        }
        for (const Instruction* b : i->control_predecessors()) highest = std::max(highest, outside[node_of(b)]);
      }
      outside[n] = highest;
      if (nodes_[n].size() == 1) level[position_.at(nodes_[n][0])] = highest;
    }
    return level;
  }

  std::vector<std::size_t> all_nodes() const {
    std::vector<std::size_t> all(order_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  // Tied instructions of one level that hang together, operands first.
  std::vector<std::vector<Instruction*>> parts(std::vector<Instruction*> members, const Extents& extents,
                                               const std::vector<int>& level, const RowSpace& space) const {
    std::ranges::sort(members, {}, [&](const Instruction* i) { return position_.at(i); });
    std::unordered_map<const Instruction*, const Instruction*> leader;
    for (const Instruction* i : members) leader[i] = i;
    const auto find = [&](const Instruction* i) {
      while (leader[i] != i) i = leader[i] = leader[leader[i]];
      return i;
    };
    for (const Instruction* i : members)
      for (std::int64_t k = 0; k < i->num_operands(); ++k) {
        const Instruction* o = i->operand(k);
        if (leader.contains(o) && is_tied(extents, space, *i, k) && level[position_.at(i)] == level[position_.at(o)])
          leader[find(o)] = find(i);
      }
    std::vector<std::vector<Instruction*>> found;
    std::unordered_map<const Instruction*, std::size_t> part_of;
    for (Instruction* i : members) {
      const auto [at, added] = part_of.emplace(find(i), found.size());
      if (added) found.emplace_back();
      found[at->second].push_back(i);
    }
    return found;
  }

  static void refuse(Instruction& reduce, const std::string& reason) {
    reduce.mutable_annotations().decisions["not_rows"] = reason;
  }

  // Instructions that use a row's sum.
  static std::unordered_set<const Instruction*> after_sums(const std::vector<Instruction*>& part) {
    std::unordered_set<const Instruction*> after;
    for (const Instruction* i : part)
      if (i->opcode() == Opcode::Reduce || std::ranges::any_of(i->operands(), [&](const Instruction* o) { return after.contains(o); }))
        after.insert(i);
    return after;
  }

  // What comes before all sums stays if nothing else needs it, or if it has to be written anyway.
  static std::vector<Instruction*> keep(const std::vector<Instruction*>& part) {
    const std::unordered_set<const Instruction*> after = after_sums(part), all(part.begin(), part.end());
    std::unordered_set<const Instruction*> kept;
    for (auto at = part.rbegin(); at != part.rend(); ++at) {
      const Instruction& i = **at;
      const bool leaves = i.is_root() || std::ranges::any_of(i.users(), [&](const Instruction* u) { return !all.contains(u); });
      const bool dropped = std::ranges::any_of(i.users(), [&](const Instruction* u) { return all.contains(u) && !kept.contains(u); });
      const bool is_worth = !leaves || !is_cheap(i) || large_operands(i) > 1;
      if (after.contains(&i) || (!dropped && is_worth)) kept.insert(&i);
    }
    std::vector<Instruction*> in_order = part;
    std::erase_if(in_order, [&](const Instruction* i) { return !kept.contains(i); });
    return in_order;
  }

  void consider(std::vector<Instruction*> part, const Extents& extents, const RowSpace& space) {
    // The last ones need nobody after them.
    while (part.size() > kMaxMembers && part.back()->opcode() != Opcode::Reduce) part.pop_back();
    std::vector<Instruction*> reduces;
    for (Instruction* i : part)
      if (i->opcode() == Opcode::Reduce) reduces.push_back(i);
    if (reduces.empty() || (reduces.size() == 1 && !comes_back(part, extents))) return;
    if (const std::string reason = objection(part, reduces, space); !reason.empty()) {
      for (Instruction* r : reduces) refuse(*r, reason);
      return;
    }
    RowGroup group{space, std::move(part)};
    number_passes(group);
    grouped_.insert(group.members.begin(), group.members.end());
    groups_.push_back(std::move(group));
  }

  static bool comes_back(const std::vector<Instruction*>& part, const Extents& extents) {
    const auto after = after_sums(part);
    return std::ranges::any_of(part, [&](const Instruction* i) { return after.contains(i) && extents.at(i) == Extent::Full; });
  }

  static std::string objection(const std::vector<Instruction*>& part, const std::vector<Instruction*>& reduces, const RowSpace& space) {
    if (part.size() > kMaxMembers) return "the kernel would be large";
    std::int64_t width = 1;
    for (const Instruction* r : reduces) width = std::max<std::int64_t>(width, byte_width(r->shape().dtype()));
    const std::int64_t row_bytes = space.columns() * width;
    if (space.rows() < kFewRows && row_bytes > kLongRow) return "there are few rows, and they are long";
    if (!space.by_lanes && space.rows() > 1 && row_bytes * std::min<std::int64_t>(space.rows(), 64 / width) > kNearBytes)
      return "the columns are too long to stay near";
    return {};
  }

  // A sum is made in the pass after those that it depends on.
  static void number_passes(const RowGroup& group) {
    std::unordered_map<const Instruction*, int> pass;
    for (Instruction* i : group.members) {
      int latest = 0;
      for (const Instruction* o : i->operands())
        if (const auto found = pass.find(o); found != pass.end()) latest = std::max(latest, found->second);
      pass[i] = i->opcode() == Opcode::Reduce ? ++latest : latest;
      if (i->opcode() == Opcode::Reduce) i->mutable_annotations().decisions["rows"] = "pass " + std::to_string(latest);
    }
  }

  // --- Sums over rows, once all groups are there.

  void take_column_sums(RowGroup& group) {
    std::int64_t blocks = 0;
    std::size_t taken = 0;
    for (Instruction* i : order_) {
      if (i->opcode() != Opcode::Reduce || is_grouped(*i) || !i->control_predecessors().empty() || !i->control_successors().empty()) continue;
      const auto sum = column_sum(*i, group.space);
      std::vector<Instruction*> made;
      if (!sum || !is_at_hand(*sum->value, group, made)) continue;
      std::string reason = column_objection(*i, *sum, group);
      if (reason.empty() && taken == kMaxColumnSums) reason = "many sums over these rows are made already";
      if (reason.empty() && blocks != 0 && blocks != sum->blocks) reason = "it takes other blocks of rows";
      if (!reason.empty()) {
        refuse(*i, reason);
        continue;
      }
      blocks = sum->blocks;
      ++taken;
      i->mutable_annotations().decisions["columns"] = "blocks of " + std::to_string(group.space.rows() / blocks) + " rows";
      for (Instruction* m : made) take(group, *m);
      if (i->operand(0) != sum->value) take(group, *i->operand(0));
      take(group, *i);
    }
    std::ranges::sort(group.members, {}, [&](const Instruction* m) { return position_.at(m); });
  }

  void take(RowGroup& group, Instruction& i) {
    if (!grouped_.insert(&i).second) return;
    const std::size_t node = node_of(group.members[0]), own = position_.at(&i);
    group.members.push_back(&i);
    nodes_[own].clear();
    nodes_[node].push_back(&i);
    owner_[own] = node;
  }

  // Whether the kernel has an element of it for each element of its rows, or can make it of such: `made`, for no other use.
  bool is_at_hand(const Instruction& value, const RowGroup& group, std::vector<Instruction*>& made) const {
    constexpr std::size_t kMost = 4;
    if (has(value, group)) return true;
    if (made.size() == kMost || !may_join(value) || !hlo::is_elementwise(value.opcode()) || !is_cheap(value) || value.is_root() ||
        value.users().size() != 1)
      return false;
    made.push_back(order_[position_.at(&value)]);
    return std::ranges::all_of(value.operands(), [&](const Instruction* o) { return is_free(*o) || is_at_hand(*o, group, made); });
  }

  bool has(const Instruction& value, const RowGroup& group) const {
    if (position_.contains(&value) && is_grouped(value)) return node_of(&value) == node_of(group.members[0]);
    return std::ranges::any_of(group.members, [&](const Instruction* m) {
      for (std::int64_t k = 0; k < m->num_operands(); ++k)
        if (m->operand(k) == &value)
          for (const Extent e : {Extent::Row, Extent::Full})
            if (axes_of(m->shape(), group.space, e) && operand_extent(*m, e, k, group.space) == Extent::Full) return true;
      return false;
    });
  }

  std::string column_objection(const Instruction& reduce, const ColumnSum& sum, const RowGroup& group) const {
    const RowSpace& space = group.space;
    const std::int64_t width = byte_width(sum.value->shape().dtype());
    if (group.members.size() + 2 > kMaxMembers) return "the kernel would be large";
    if (reduce.operand(1)->opcode() != Opcode::Constant) return "its initial value is computed";
    if (sum.blocks == 1 && space.rows() * space.columns() * width > kOneBlock)
      return "it takes all rows one after the other, so that they cannot be shared out";
    if (sum.blocks > 1 && sum.blocks < kFewBlocks) return "there are few blocks of rows";
    if (space.columns() * width > kSumsBytes) return "the rows are too long for their sums to stay near";
    const Instruction* operand = reduce.operand(0);
    if (operand != sum.value && operand->users().size() > 1) return "its blocks are used by others";
    return reaches(reduce, group) ? "the rows wait for it" : "";
  }

  // Whether a way leads from `i` to the group. Says yes when in doubt.
  bool reaches(const Instruction& i, const RowGroup& group) const {
    const std::size_t goal = node_of(group.members[0]);
    std::unordered_set<std::size_t> seen = {node_of(&i)};
    std::vector<std::size_t> open = {node_of(&i)};
    while (!open.empty()) {
      const std::size_t n = open.back();
      open.pop_back();
      if (n == goal || seen.size() > kMaxSteps) return true;
      const auto use = [&](const Instruction* user) {
        if (position_.contains(user) && seen.insert(node_of(user)).second) open.push_back(node_of(user));
      };
      for (const Instruction* m : nodes_[n]) {
        for (const Instruction* user : m->users()) use(user);
        for (const Instruction* after : m->control_successors()) use(after);
      }
    }
    return false;
  }

  // Groups become nodes; nodes are put in order anew.
  void merge(std::size_t first) {
    for (std::size_t g = first; g < groups_.size(); ++g) {
      const std::size_t node = position_.at(groups_[g].members[0]);
      nodes_[node].clear();
      for (Instruction* i : groups_[g].members) {
        const std::size_t n = position_.at(i);
        owner_[n] = node;
        if (n != node) nodes_[n].clear();
        nodes_[node].push_back(i);
      }
    }
    order_nodes();
  }

  void order_nodes() {
    node_order_.clear();
    std::vector<char> state(nodes_.size(), 0);  // 1: begun, 2: done
    std::vector<std::size_t> stack;
    for (std::size_t start = 0; start < nodes_.size(); ++start) {
      if (nodes_[start].empty() || state[start] != 0) continue;
      stack.push_back(start);
      while (!stack.empty()) {
        const std::size_t n = stack.back();
        if (state[n] != 0) {
          stack.pop_back();
          if (state[n] == 1) node_order_.push_back(n);
          state[n] = 2;
          continue;
        }
        state[n] = 1;
        const auto need = [&](const Instruction* o) {
          if (state[node_of(o)] == 0) stack.push_back(node_of(o));
        };
        for (const Instruction* i : nodes_[n]) {
          for (const Instruction* o : i->operands()) need(o);
          for (const Instruction* b : i->control_predecessors()) need(b);
        }
      }
    }
  }

  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, std::size_t> position_;
  std::vector<std::size_t> owner_;                 ///< of a position: the node that it is in
  std::vector<std::vector<Instruction*>> nodes_;   ///< by the position of the first; empty if in another's
  std::vector<std::size_t> node_order_;            ///< operands first; empty while nodes are single
  std::unordered_set<const Instruction*> grouped_, seen_;
  std::vector<RowGroup> groups_;
  std::int64_t spent_ = 0;
};

}  // namespace

std::vector<RowGroup> form_rows(Computation& c) { return RowFormer(c).run(); }

std::vector<const Instruction*> row_reduces(const Computation& fused) {
  std::vector<const Instruction*> found;
  for (const Instruction& i : fused.instructions())
    if (i.opcode() == Opcode::Reduce && i.annotations().decisions.contains("rows")) found.push_back(&i);
  return found;
}

}  // namespace hloom::fusion
