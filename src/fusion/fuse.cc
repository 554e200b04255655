// Row groups first (form_rows.h), then greedy fusion. A group is the instructions of one kernel with its hero: the instruction that says how its loops go
// (a reduce, a dot, a window update …), or none for plain loops. Each instruction, users first, looks at the groups of its users.
#include "fusion/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "fusion/bases.h"
#include "fusion/column_sums.h"
#include "fusion/cost.h"
#include "fusion/form_levels.h"
#include "fusion/form_rows.h"
#include "fusion/places.h"
#include "hlo/reduce_order.h"
#include "hlo/packing.h"

namespace hloom::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::size_t kMaxGroup = 160;       // instructions in a kernel
constexpr std::size_t kMaxRowResults = 3;    // of a kernel over rows, beyond which nothing else is made along: all are alive at once
constexpr std::size_t kMaxExpanding = 64;    // more, that make much of little: written, they would cost most
constexpr std::size_t kMaxPlaces = 2048;     // of a kernel's instructions: each is code
constexpr double kMaxElements = 8;           // of an instruction, that a kernel computes for one of its results
constexpr double kMaxFunctions = 1.25;       // the same of a function, which costs tens of instructions each time
constexpr int kMaxSpread = 2;                // instructions that spread one below the other: with each, loops double and strides grow
constexpr std::size_t kMaxCopies = 3;        // kernels that a producer is computed in
constexpr std::int64_t kLittle = 8;          // a part in so many: what is repeated that often is never written
constexpr int kMaxCopiedChain = 8;           // instructions in a row that are computed several times
constexpr std::size_t kMaxSiblings = 6;      // results of reduces over the same elements
constexpr std::int64_t kMaxSearch = 2000;    // instructions looked at for one question about cycles

struct Group {
  std::vector<Instruction*> members;  // users before producers
  std::vector<Instruction*> roots;    // what is written
  Hero hero = Hero::Loop;
  std::vector<std::int64_t> domain;   // dimensions that its loops walk
  std::string rows;                   // of a row group: how many, of how many elements
  Places places;                      // of its members
};

/// The groups of one computation.
class Fuser {
 public:
  Fuser(Computation& computation, const FuseOptions& options) : c_(computation), options_(options) {}

  void run() {
    split_free_bases(c_);
    std::vector<Instruction*> order = c_.post_order();
    for (std::size_t n = 0; n < order.size(); ++n) position_[order[n]] = static_cast<std::int64_t>(n);
    bases_.emplace(order);
    if (options_.rows) {
      const std::vector<RowGroup> all_rows = form_rows(c_);
      for (const RowGroup& rows : all_rows) start(rows);
      for (const LevelGroup& levels : form_levels(c_, all_rows)) start(levels);
    }
    for (auto i = order.rbegin(); i != order.rend(); ++i) place(**i);
    for (Group* group : live_groups()) {
      if (is_formed(*group)) {
        drop_dead(*group);
        std::ranges::sort(group->roots, {}, [&](const Instruction* r) { return position_.at(r); });
      }
      outline(*group);
    }
    c_.sort();
  }

 private:
  using Ids = std::set<std::size_t>;

  void place(Instruction& i) {
    if (is_structural(i) || i.opcode() == Opcode::Fusion) return;
    if (groups_of_.contains(&i)) return place_in_rows(i);
    if (i.opcode() == Opcode::Constant && !is_free(i)) return;  // an array in memory
    if (is_free(i)) {  // scalars and iotas are made where they are used
      place_free(i);
      return;
    }
    // A view of an array that is in memory anyway costs nothing.
    if (i.opcode() == Opcode::Bitcast && is_in_memory(*i.operand(0))) return;
    Ids groups;
    bool written = i.is_root() || !i.control_successors().empty();
    for (const Instruction* user : i.users()) {
      const auto found = groups_of_.find(user);
      if (found == groups_of_.end())
        written = true;
      else
        groups.insert(found->second.begin(), found->second.end());
    }
    if (i.users().empty()) written = true;
    merge_copies(i, groups);
    std::string reason;
    if (!written && joins(i, groups, reason)) {
      for (const std::size_t g : groups) add(i, g);
      if (groups.size() > 1) copied_chain_[&i] = 1 + longest_chain(i);
      return;
    }
    if (i.opcode() == Opcode::Bitcast) return;
    if (written && reason.empty()) reason = "its value is needed whole";
    if (!joins_as_result(i, groups) && !joins_sibling(i, groups)) start(i);
    if (!groups.empty()) i.mutable_annotations().decisions["not_fused"] = reason;
  }

  static bool is_sum_of_arrays(const Instruction& i) { return i.opcode() == Opcode::Add && large_operands(i) == 2; }

  // A member of a row group is computed again in the other kernels that want it if it is cheap, and otherwise written. So is what
  // joins two arrays, a residual sum: the others would read both, and keep both alive. What is written is read by all.
  void place_in_rows(Instruction& i) {
    const std::size_t own = *groups_of_.at(&i).begin();
    Ids others;
    bool written = i.is_root() || i.users().empty();
    for (const Instruction* user : i.users()) {
      const auto found = groups_of_.find(user);
      if (found == groups_of_.end())
        written = true;
      else
        others.insert(found->second.begin(), found->second.end());
    }
    others.erase(own);
    std::string reason;
    if (!written && others.empty()) return;
    if (!written && groups_[own].hero == Hero::Rows && is_cheap(i) && !is_sum_of_arrays(i) && joins(i, others, reason)) {
      for (const std::size_t g : others) add(i, g);
      copied_chain_[&i] = 1 + longest_chain(i);
      return;
    }
    make_root(i, own);
  }

  void place_free(Instruction& i) {
    Ids groups;
    bool written = i.is_root();
    for (const Instruction* user : i.users()) {
      const auto found = groups_of_.find(user);
      if (found == groups_of_.end())
        written = true;
      else
        groups.insert(found->second.begin(), found->second.end());
    }
    for (const Instruction* user : i.users())
      if (needs_buffer(i, *user)) {
        written = true;
        for (const std::size_t g : groups_of_.at(user)) groups.erase(g);
      }
    for (const std::size_t g : groups) add(i, g);
    // Constants stand for themselves where a whole value is needed.
    if (written && i.opcode() != Opcode::Constant) start(i);
  }

  static bool is_in_memory(const Instruction& i) {
    if (i.opcode() == Opcode::Bitcast) return is_in_memory(*i.operand(0));
    return (is_structural(i) || i.opcode() == Opcode::Fusion || hero_of(i) != Hero::Loop || i.opcode() == Opcode::Constant) &&
           !is_free(i);
  }

  // Kernels that take an operand as an array in memory.
  bool needs_buffer(const Instruction& i, const Instruction& user) const {
    if (!groups_of_.contains(&user)) return false;
    if (user.opcode() == Opcode::DynamicUpdateSlice) return user.operand(0) == &i;
    if (user.opcode() == Opcode::Scatter)
      return std::ranges::find(user.operands().begin(), user.operands().begin() + user.num_operands() / 2, &i) !=
             user.operands().begin() + user.num_operands() / 2;
    const Hero hero = hero_of(user);
    return hero == Hero::Dot || hero == Hero::Convolution || hero == Hero::Routine;
  }

  int longest_chain(const Instruction& i) const {
    int longest = 0;
    for (const Instruction* user : i.users())
      if (const auto found = copied_chain_.find(user); found != copied_chain_.end())
        longest = std::max(longest, found->second);
    return longest;
  }

  static bool expands(const Instruction& i) {
    return i.opcode() == Opcode::Broadcast && i.shape().num_elements() > i.operand(0)->shape().num_elements();
  }

  // What it repeats is read faster, in any number of kernels, than it is itself.
  static bool repeats_little(const Instruction& i) {
    return i.opcode() == Opcode::Broadcast && i.operand(0)->shape().num_elements() * kLittle <= i.shape().num_elements();
  }

  // Whether each of the kernels reads its operands anyway, so that only an instruction is repeated and nothing read.
  bool reads_nothing_new(const Instruction& i, const Ids& groups) const {
    const auto is_read_in = [&](const Instruction* o, std::size_t g) {
      return std::ranges::any_of(o->users(), [&](const Instruction* user) {
        const auto found = user == &i ? groups_of_.end() : groups_of_.find(user);
        return found != groups_of_.end() && found->second.contains(g);
      });
    };
    return std::ranges::all_of(i.operands(), [&](const Instruction* o) {
      return is_tiny(*o) || is_free(*o) || std::ranges::all_of(groups, [&](std::size_t g) { return is_read_in(o, g); });
    });
  }

  // Arrays of its size that it is computed from element by element, over a few instructions.
  static std::size_t arrays_behind(const Instruction& i) {
    constexpr std::size_t kMost = 24;
    std::unordered_set<const Instruction*> seen, arrays;
    std::vector<const Instruction*> open = {&i};
    while (!open.empty() && seen.size() < kMost) {
      const Instruction* at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      for (const Instruction* o : at->operands()) {
        const bool large = o->shape().is_array() && o->shape().num_elements() == i.shape().num_elements();
        if (!large || is_free(*o) || o->opcode() == Opcode::Broadcast) continue;
        (hlo::is_elementwise(o->opcode()) ? open.push_back(o) : static_cast<void>(arrays.insert(o)));
      }
    }
    return arrays.size();
  }

  // Whether reading it once more where a kernel that computes it has written it moves less than reading, in each of the
  // kernels, all that it is made of. That may then end earlier as well.
  bool is_better_written(const Instruction& i, const Ids& groups) const {
    if (groups.size() < 2 || hero_of(i) != Hero::Loop || is_tiny(i)) return false;
    const std::size_t arrays = arrays_behind(i);
    return arrays * groups.size() > arrays + groups.size() && taking_as_result(i, groups) >= 0;
  }

  bool joins(const Instruction& i, const Ids& groups, std::string& reason) const {
    if (groups.empty()) return false;
    if (groups.size() > 1) {
      if (groups.size() > kMaxCopies && !is_tiny(i) && !repeats_little(i)) {
        reason = "it is used by " + std::to_string(groups.size()) + " kernels";
        return false;
      }
      if (!is_cheap(i)) {
        reason = "it is used by several kernels and is not cheap to compute again";
        return false;
      }
      if (is_better_written(i, groups)) {
        reason = "reading it costs less than reading what it is made of in several kernels";
        return false;
      }
      if (longest_chain(i) >= kMaxCopiedChain * (reads_nothing_new(i, groups) ? 2 : 1)) {
        reason = "the chain of instructions computed several times is long";
        return false;
      }
    }
    for (const std::size_t g : groups) {
      const Group& group = groups_[g];
      if (group.members.size() >= kMaxGroup + (expands(i) ? kMaxExpanding : 0)) {
        reason = "the kernel is large";
        return false;
      }
      const Places::Count count = group.places.count(i);
      const double most = hlo::is_function(i.opcode()) ? kMaxFunctions : kMaxElements;
      if (group.places.total() + count.places > kMaxPlaces || (!is_tiny(i) && count.elements > most)) {
        reason = "the kernel needs it at many places";
        return false;
      }
      if (spreads(i) && count.spread >= kMaxSpread) {
        reason = "it is spread several times: its elements lie strides of strides apart";
        return false;
      }
      if ((group.hero == Hero::WindowUpdate || group.hero == Hero::Scatter) && bases_->are_read_late(i, *group.roots[0], group.members)) {
        reason = "it reads an array that is updated in place";
        return false;
      }
      for (const Instruction* user : i.users()) {
        const auto found = groups_of_.find(user);
        if (found == groups_of_.end() || !found->second.contains(g)) continue;
        if (!is_cheap(i) && !is_tiny(i) && (repeats(i, *user) || repeated_.contains(user))) {
          reason = "it would be computed once for each repetition";
          return false;
        }
        if (!may_fuse(i, *user, group.hero, elementwise_to_root(*user, group), reason)) return false;
      }
    }
    return true;
  }

  // Whether `user` has more elements than `i`, each of which reads one of i's. A few times do not count where they are made
  // side by side: next to a reduce that is unrolled over them.
  static bool repeats(const Instruction& i, const Instruction& user) {
    if (!user.shape().is_array() || user.shape().num_elements() <= i.shape().num_elements()) return false;
    if (user.opcode() == Opcode::Broadcast) return !is_side_by_side(i, user);
    return user.opcode() == Opcode::Gather;
  }

  static bool is_side_by_side(const Instruction& i, const Instruction& broadcast) {
    if (broadcast.shape().num_elements() > kUnrolled * i.shape().num_elements()) return false;
    return comes_from_unrolled(i, 6) && !comes_from_function(i, 6);
  }

  // A function of tens of instructions is not worth doing again, even a few times.
  static bool comes_from_function(const Instruction& i, int steps) {
    if (hlo::is_function(i.opcode())) return true;
    if (steps == 0 || !(hlo::is_elementwise(i.opcode()) || i.opcode() == Opcode::Bitcast || i.opcode() == Opcode::Reshape)) return false;
    return std::ranges::any_of(i.operands(), [&](const Instruction* o) { return comes_from_function(*o, steps - 1); });
  }

  // Looks back over a few instructions of the same elements.
  static bool comes_from_unrolled(const Instruction& i, int steps) {
    if (is_unrolled(i)) return true;
    if (steps == 0 || !(hlo::is_elementwise(i.opcode()) || i.opcode() == Opcode::Bitcast || i.opcode() == Opcode::Reshape)) return false;
    return std::ranges::any_of(i.operands(), [&](const Instruction* o) { return comes_from_unrolled(*o, steps - 1); });
  }

  // Whether every element of the group's roots reads `i` only at its own index.
  bool elementwise_to_root(const Instruction& i, const Group& group) const {
    if (i.shape().is_tuple() || i.shape().dims() != group.domain) return false;
    if (std::ranges::find(group.roots, &i) != group.roots.end()) return hlo::is_elementwise(i.opcode()) || i.opcode() == Opcode::Reduce;
    if (!hlo::is_elementwise(i.opcode())) return false;
    const auto known = aligned_.find(&i);
    return known != aligned_.end() && known->second;
  }

  // Whether an instruction of a row group reads each element of an array once, at its own place.
  static bool reads_its_row(const Instruction& user) {
    return hlo::is_elementwise(user.opcode()) || user.opcode() == Opcode::Reduce;
  }

  void add(Instruction& i, std::size_t g) {
    Group& group = groups_[g];
    group.members.push_back(&i);
    group.places.add(i);
    groups_of_[&i].insert(g);
    bool aligned = hlo::is_elementwise(i.opcode()) && !i.shape().is_tuple() && i.shape().dims() == group.domain;
    for (const Instruction* user : i.users())
      if (groups_of_.contains(user)) aligned = aligned && elementwise_to_root(*user, group);
    aligned_[&i] = aligned;
    for (const Instruction* user : i.users())
      if (groups_of_.contains(user) && (repeats(i, *user) || repeated_.contains(user))) repeated_.insert(&i);
    if (hero_of(i) == Hero::Reduce) {
      if (group.hero == Hero::Loop) group.hero = Hero::Reduce;
      siblings_[loop_of(i)].push_back(g);
    }
  }

  void make_root(Instruction& i, std::size_t g) {
    groups_[g].roots.push_back(&i);
    groups_[g].places.add_root(i);
  }

  std::size_t start(Instruction& i) {
    groups_.push_back({});
    Group& group = groups_.back();
    group.members = {&i};
    group.roots = {&i};
    group.places.add_root(i);
    group.hero = hero_of(i);
    if (group.hero == Hero::WindowUpdate)
      group.domain = i.operand(1)->shape().dims();
    else if (!i.shape().is_tuple())
      group.domain = i.shape().dims();
    groups_of_[&i].insert(groups_.size() - 1);  // what is free may be made in other kernels too
    if (group.hero == Hero::Reduce) siblings_[loop_of(i)].push_back(groups_.size() - 1);
    return groups_.size() - 1;
  }

  // Reduces with equal ones can go through one loop.
  using LoopOf = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;
  static LoopOf loop_of(const Instruction& reduce) {
    return {reduce.operand(0)->shape().dims(), {reduce.dimensions().begin(), reduce.dimensions().end()}};
  }

  // Large values that a reduce is computed from, found by looking back over a few elementwise instructions.
  static std::unordered_set<const Instruction*> sources(const Instruction& reduce) {
    constexpr std::size_t kMost = 24;
    std::unordered_set<const Instruction*> found;
    std::vector<const Instruction*> open = {reduce.operand(0)};
    while (!open.empty() && found.size() < kMost) {
      const Instruction* i = open.back();
      open.pop_back();
      const bool large = i->shape().is_array() && i->shape().num_elements() == reduce.operand(0)->shape().num_elements();
      if (!large || is_free(*i) || i->opcode() == Opcode::Broadcast || !found.insert(i).second) continue;
      if (hlo::is_elementwise(i->opcode())) open.insert(open.end(), i->operands().begin(), i->operands().end());
    }
    return found;
  }

  // A reduce over the same elements as another one that reads some of the same arrays, as one more result of its kernel.
  bool joins_sibling(Instruction& i, const Ids& groups) {
    if (hero_of(i) != Hero::Reduce || i.num_operands() != 2 || !i.control_predecessors().empty() || !i.control_successors().empty()) return false;
    const auto found = siblings_.find(loop_of(i));
    if (found == siblings_.end()) return false;
    const auto own = sources(i);
    const auto shares = [&](const Instruction* m) {
      return m->opcode() == Opcode::Reduce && loop_of(*m) == found->first &&
             std::ranges::any_of(sources(*m), [&](const Instruction* s) { return own.contains(s); });
    };
    for (const std::size_t g : found->second) {
      Group& group = groups_[g];
      if (group.hero != Hero::Reduce || group.domain != i.shape().dims() || group.members.size() >= kMaxGroup ||
          group.roots.size() >= kMaxSiblings || groups.contains(g) || !std::ranges::any_of(group.members, shares) || reaches_around(i, g))
        continue;
      add(i, g);
      make_root(i, g);
      aligned_[&i] = true;
      return true;
    }
    return false;
  }

  void start(const RowGroup& rows) {
    groups_.push_back({});
    Group& group = groups_.back();
    group.members.assign(rows.members.rbegin(), rows.members.rend());
    group.hero = Hero::Rows;
    group.rows = std::to_string(rows.space.rows()) + " of " + std::to_string(rows.space.columns());
    for (const Instruction* m : group.members) {
      groups_of_[m] = {groups_.size() - 1};
      group.places.count(*m).places == 0 ? group.places.add_root(*m) : group.places.add(*m);
      if (m->opcode() == Opcode::Reduce && !is_column_sum(*m)) group.domain = m->operand(0)->shape().dims();
    }
  }

  void start(const LevelGroup& levels) {
    groups_.push_back({});
    Group& group = groups_.back();
    group.members.assign(levels.members.rbegin(), levels.members.rend());
    group.hero = Hero::Levels;
    for (const Instruction* m : group.members) groups_of_[m] = {groups_.size() - 1};
  }

  // Whether its members are known before any instruction has its turn.
  static bool is_formed(const Group& group) { return group.hero == Hero::Rows || group.hero == Hero::Levels; }

  // A value that is written anyway, as one more result of a kernel that computes it at each of its own elements.
  bool joins_as_result(Instruction& i, const Ids& groups) {
    const std::int64_t g = taking_as_result(i, groups);
    if (g < 0) return false;
    add(i, static_cast<std::size_t>(g));
    make_root(i, static_cast<std::size_t>(g));
    aligned_[&i] = true;
    return true;
  }

  // -1: none.
  std::int64_t taking_as_result(const Instruction& i, const Ids& groups) const {
    if (hero_of(i) != Hero::Loop || i.shape().is_tuple() || i.shape().num_elements() <= 1) return -1;
    for (const std::size_t g : groups) {
      const Group& group = groups_[g];
      if ((group.hero != Hero::Loop && group.hero != Hero::Rows) || group.domain != i.shape().dims() ||
          group.members.size() >= kMaxGroup || (group.hero == Hero::Rows && (group.roots.size() >= kMaxRowResults || is_of_pieces(i))))
        continue;
      const bool aligned = std::ranges::all_of(i.users(), [&](const Instruction* user) {
        const auto found = groups_of_.find(user);
        if (found == groups_of_.end() || !found->second.contains(g)) return true;
        return group.hero == Hero::Rows ? reads_its_row(*user) : elementwise_to_root(*user, group);
      });
      if (aligned && !reaches_around(i, g)) return static_cast<std::int64_t>(g);
    }
    return -1;
  }

  // Copies of `i` to other layouts become results of a kernel that computes it anyway, instead of computing it again.
  void merge_copies(const Instruction& i, Ids& groups) {
    for (const std::size_t from : Ids(groups)) {
      Instruction* copy = groups_[from].members[0];
      if (groups_[from].members.size() > 1 || copy->opcode() != Opcode::Copy || copy->operand(0) != &i) continue;
      for (const std::size_t to : groups) {
        if (to == from || !takes_copy(i, *copy, to)) continue;
        groups_[from] = {};
        groups.erase(from);
        groups_[to].members.push_back(copy);
        make_root(*copy, to);
        groups_of_[copy] = {to};
        aligned_[copy] = true;
        break;
      }
    }
  }
  bool takes_copy(const Instruction& i, const Instruction& copy, std::size_t g) const {
    const Group& group = groups_[g];
    if (group.hero != Hero::Loop || group.domain != copy.shape().dims() || group.members.size() >= kMaxGroup) return false;
    for (const Instruction* user : i.users())
      if (const auto found = groups_of_.find(user); found != groups_of_.end() && found->second.contains(g))
        if (!elementwise_to_root(*user, group)) return false;
    const bool reads = std::ranges::any_of(copy.users(), [&](const Instruction* user) {
      const auto found = groups_of_.find(user);
      return found != groups_of_.end() && found->second.contains(g);
    });
    return !reads && !reaches_around(copy, g);
  }

  // Whether a path from `i` leaves group g and comes back to it: then g cannot make `i`. Says yes when in doubt. Walks
  // kernels, and instructions that are in none; an instruction in several kernels is each of them.
  bool reaches_around(const Instruction& i, std::size_t g) const {
    std::unordered_set<const Instruction*> seen;
    std::set<std::size_t> seen_groups;
    std::vector<const Instruction*> stack;  // whose value is there outside of g
    bool back = false;
    const auto use = [&](const Instruction* user) {
      const auto found = groups_of_.find(user);
      if (found == groups_of_.end()) {
        if (seen.insert(user).second) stack.push_back(user);
        return;
      }
      for (const std::size_t group : found->second) {
        if (group == g) {
          back = true;
        } else if (seen_groups.insert(group).second) {
          // Which members of a group formed before are written is only known when all have had their turn.
          const Group& other = groups_[group];
          for (const Instruction* root : is_formed(other) ? other.members : other.roots) stack.push_back(root);
        }
      }
    };
    for (const Instruction* user : i.users()) use(user);
    for (const Instruction* after : i.control_successors()) use(after);
    back = false;  // g's own use of `i`
    for (std::int64_t looked = 0; !stack.empty(); ++looked) {
      const Instruction* at = stack.back();
      stack.pop_back();
      if (looked > kMaxSearch) return true;
      for (const Instruction* user : at->users()) use(user);
      for (const Instruction* after : at->control_successors()) use(after);
      if (back) return true;
    }
    return false;
  }

  // What only other kernels want and make themselves.
  static void drop_dead(Group& group) {
    std::unordered_set<const Instruction*> live(group.roots.begin(), group.roots.end());
    for (const Instruction* m : group.members)
      if (std::ranges::any_of(m->users(), [&](const Instruction* user) { return live.contains(user); })) live.insert(m);
    std::erase_if(group.members, [&](const Instruction* m) { return !live.contains(m); });
  }

  std::vector<Group*> live_groups() {
    std::vector<Group*> live;
    for (Group& g : groups_)
      if (!g.members.empty()) live.push_back(&g);
    return live;
  }

  // Replaces the group by a fusion that calls a computation of its members' copies.
  void outline(Group& group) {
    hlo::Module& module = c_.module();
    Instruction* first_root = group.roots[0];
    Computation* fused = module.add_computation("fused_" + std::string(hlo::name(first_root->opcode())));
    std::unordered_map<const Instruction*, Instruction*> copies;
    std::vector<Instruction*> operands;
    const std::unordered_set<const Instruction*> inside(group.members.begin(), group.members.end());
    std::vector<Instruction*> members = group.members;
    std::ranges::sort(members, {}, [&](const Instruction* m) { return position_.at(m); });
    const auto copy_of = [&](Instruction* operand) {
      const auto found = copies.find(operand);
      if (found != copies.end()) return found->second;
      Instruction* parameter = fused->add_parameter(static_cast<std::int64_t>(operands.size()), operand->shape(), "p");
      operands.push_back(operand);
      copies.emplace(operand, parameter);
      return parameter;
    };
    for (Instruction* m : members) {
      std::vector<Instruction*> own;
      for (Instruction* operand : m->operands()) own.push_back(copy_of(operand));
      copies[m] = fused->add_clone(*m, std::move(own));
    }
    std::vector<Instruction*> results;
    for (Instruction* root : group.roots) results.push_back(copies.at(root));
    Instruction* root = results.size() == 1 ? results[0] : fused->add_tuple(results);
    fused->set_root(root);
    // Operands that were themselves made by another fusion already are its results by now: see `replaced_`.
    for (Instruction*& operand : operands)
      if (const auto found = replaced_.find(operand); found != replaced_.end()) operand = found->second;
    Instruction* fusion = c_.add(Opcode::Fusion, root->shape(), operands, first_root->name() + "_fusion");
    fusion->set_called({fused});
    fusion->mutable_attr<hlo::FusionAttr>().kind =
        group.hero == Hero::Routine ? hlo::FusionKind::Custom
        : group.hero == Hero::Loop  ? hlo::FusionKind::Loop
                                    : hlo::FusionKind::Input;
    annotate(*fusion, group);
    for (std::size_t r = 0; r < group.roots.size(); ++r) {
      Instruction* value =
          group.roots.size() == 1 ? fusion : c_.add_get_tuple_element(fusion, static_cast<std::int64_t>(r));
      move_control_edges(*group.roots[r], *fusion);
      c_.replace_uses(group.roots[r], value);
      replaced_[group.roots[r]] = value;
    }
  }

  void annotate(Instruction& fusion, const Group& group) {
    hlo::Annotations& a = fusion.mutable_annotations();
    a.metadata = group.roots[0]->annotations().metadata;
    const auto& from = group.roots[0]->annotations().decisions;
    if (const auto found = from.find("not_fused"); found != from.end()) a.decisions["not_fused"] = found->second;
    a.decisions["kernel"] = name(group.hero);
    if (group.hero == Hero::Rows) a.decisions["rows"] = group.rows;
  }

  static void move_control_edges(Instruction& from, Instruction& to) {
    const auto before = from.control_predecessors();
    const auto after = from.control_successors();
    from.drop_control_edges();
    for (Instruction* b : before) to.add_control_predecessor(b);
    for (Instruction* a : after) a->add_control_predecessor(&to);
  }

  Computation& c_;
  const FuseOptions& options_;
  std::unordered_map<const Instruction*, std::int64_t> position_;
  std::vector<Group> groups_;
  std::unordered_map<const Instruction*, Ids> groups_of_;
  std::unordered_map<const Instruction*, bool> aligned_;
  std::unordered_map<const Instruction*, int> copied_chain_;
  std::map<LoopOf, std::vector<std::size_t>> siblings_;  ///< groups by what their reduces go over
  std::optional<Bases> bases_;                       ///< arrays that are updated in place
  std::unordered_set<const Instruction*> repeated_;  ///< elements are computed several times in their kernel
  std::unordered_map<const Instruction*, Instruction*> replaced_;
};

// Computations that run step by step: reached through control flow alone.
void collect_running(Computation* from, std::vector<Computation*>& out, std::unordered_set<Computation*>& seen) {
  if (!seen.insert(from).second) return;
  for (const Instruction& i : from->instructions())
    if (i.opcode() == Opcode::While || i.opcode() == Opcode::Conditional || i.opcode() == Opcode::Call ||
        i.opcode() == Opcode::AsyncStart)
      for (Computation* callee : i.called()) collect_running(callee, out, seen);
  out.push_back(from);
}

}  // namespace

namespace {

// A copy to another memory space that is to go on beside others, and moves bytes as they are.
bool goes_beside(const Instruction& copy) {
  return copy.annotations().decisions.contains("beside") &&
         copy.shape().layout().unplaced() == copy.operand(0)->shape().layout().unplaced();
}

}  // namespace

bool is_structural(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Parameter:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::AfterAll:
    case Opcode::AddDependency:
    case Opcode::OptBarrier:
    case Opcode::Domain:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::CustomCall:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
    case Opcode::RngGetAndUpdateState: return true;
    case Opcode::Copy:  // what packs or unpacks is a step of its own, and so is what may go on beside others
      return goes_beside(i) ||
             (i.shape().is_array() && hlo::packed_bits(i.shape()) != hlo::packed_bits(i.operand(0)->shape()));
    default: return hlo::kind(i.opcode()) == hlo::OpcodeKind::Collective;
  }
}

Expected<> fuse(hlo::Module& module, const FuseOptions& options) {
  std::vector<Computation*> running;
  std::unordered_set<Computation*> seen;
  collect_running(module.entry(), running, seen);
  for (Computation* c : running) {
    Fuser(*c, options).run();
    // What was copied into kernels and is used no more.
    std::vector<Instruction*> order = c->post_order();
    std::unordered_set<const Instruction*> dead;
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      const bool used = std::ranges::any_of((*i)->users(), [&](const Instruction* u) { return !dead.contains(u); });
      if (!used && !(*i)->is_root() && (*i)->opcode() != Opcode::Parameter && !hlo::has_side_effect(**i) &&
          (*i)->control_successors().empty())
        dead.insert(*i);
    }
    c->set_order(order);
    c->remove_all([&](const Instruction& i) { return dead.contains(&i); });
  }
  module.sort();
  return {};
}

}  // namespace hloom::fusion
