#include "passes/simplify_conditionals.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/inline.h"
#include "passes/effects.h"
#include "passes/liveness.h"
#include "passes/make.h"
#include "passes/numbering.h"

namespace hloom::passes {
namespace {

constexpr std::int64_t kMaxSelectedInstructions = 64;
constexpr std::int64_t kMaxSelectedElements = 1024;

// Which branch a constant selector takes.
std::optional<std::int64_t> known_branch(Instruction& i) {
  const auto value = constant_integer(i.operand(0));
  if (!value) return std::nullopt;
  if (i.operand(0)->shape().dtype() == DType::Pred) return *value ? 0 : 1;
  const auto n = static_cast<std::int64_t>(i.called().size());
  return *value < 0 || *value >= n ? n - 1 : *value;
}

// The branch that all are equal to, with equal arguments.
bool all_branches_equal(const Instruction& i, const ComputationClasses& classes) {
  for (std::size_t b = 1; b < i.called().size(); ++b)
    if (classes.first_like(i.called()[b]) != classes.first_like(i.called(0)) || i.operands()[b + 1] != i.operand(1))
      return false;
  return true;
}

Instruction* inlined_branch(Instruction& i, std::int64_t branch) {
  return inline_computation(*i.called(branch), {i.operand(branch + 1)}, *i.parent(), i.control_predecessors(),
                            i.control_successors());
}

// --- Small branches ------------------------------------------------------------------------------------------------

// Neither slow nor large, so that computing it for nothing is cheaper than a branch.
bool is_small(const hlo::Computation& c) {
  if (c.num_instructions() > kMaxSelectedInstructions) return false;
  return std::ranges::all_of(c.instructions(), [](const Instruction& i) {
    if (is(&i, Opcode::Tuple) || is(&i, Opcode::Parameter)) return true;
    const bool cheap = hlo::is_elementwise(i.opcode()) || is(&i, Opcode::Constant) || is(&i, Opcode::Broadcast) ||
                       is(&i, Opcode::Reshape) || is(&i, Opcode::Iota) || is(&i, Opcode::GetTupleElement) ||
                       is(&i, Opcode::Slice);
    return cheap && i.called().empty() && i.shape().is_array() && is_plain(i.shape()) &&
           (i.shape().num_elements() <= kMaxSelectedElements || is(&i, Opcode::GetTupleElement));
  });
}

bool has_small_leaves(const Shape& shape) {
  std::int64_t elements = 0;
  for (const Shape* leaf : leaves(shape)) {
    if (!leaf->is_array() || !is_plain(*leaf)) return false;
    elements += leaf->num_elements();
    if (elements > kMaxSelectedElements) return false;
  }
  return true;
}

bool may_select(const Instruction& i) {
  return has_small_leaves(i.shape()) && i.called().size() <= 4 &&
         std::ranges::all_of(i.called(), [](const hlo::Computation* c) { return is_small(*c); });
}

// select(p, a, b), leaf by leaf.
Instruction* select_leaves(Make& make, Instruction* p, Instruction* a, Instruction* b) {
  if (a == b) return a;
  if (!a->shape().is_tuple()) return make.select(make.broadcast_scalar(p, a->shape().dims()), a, b);
  std::vector<Instruction*> elements;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(a->shape().elements().size()); ++k)
    elements.push_back(select_leaves(make, p, make.element(a, k), make.element(b, k)));
  return make.tuple(elements);
}

Instruction* selected(Instruction& i) {
  Make make(i);
  const auto n = static_cast<std::int64_t>(i.called().size());
  Instruction* selector = i.operand(0);
  const bool by_pred = selector->shape().dtype() == DType::Pred;
  Instruction* result = inlined_branch(i, n - 1);
  for (std::int64_t b = n - 2; b >= 0; --b) {
    Instruction* p = by_pred ? selector : make.compare(hlo::Direction::Eq, selector, make.integer(DType::S32, b));
    result = select_leaves(make, p, inlined_branch(i, b), result);
  }
  return result;
}

// --- The selector --------------------------------------------------------------------------------------------------

// Branch 0 of an index converted from a pred is that for false.
bool use_pred(Instruction& i) {
  Instruction* index = i.operand(0);
  if (i.called().size() != 2 || !is(index, Opcode::Convert) || index->operand(0)->shape().dtype() != DType::Pred)
    return false;
  Instruction *first = i.operand(1), *second = i.operand(2);
  i.replace_operand(0, index->operand(0));
  i.replace_operand(1, second);
  i.replace_operand(2, first);
  i.set_called({i.called(1), i.called(0)});
  return true;
}

// Branches by not(p) change places.
bool drop_not(Instruction& i) {
  Instruction* p = i.operand(0);
  if (!is(p, Opcode::Not) || p->shape().dtype() != DType::Pred) return false;
  Instruction *first = i.operand(1), *second = i.operand(2);
  i.replace_operand(0, p->operand(0));
  i.replace_operand(1, second);
  i.replace_operand(2, first);
  i.set_called({i.called(1), i.called(0)});
  return true;
}

// --- Results and arguments -----------------------------------------------------------------------------------------

// What branch `b` gives as leaf k, seen from outside: an argument or an element of one, if that is all it is.
Instruction* passed_on(Instruction& i, std::int64_t b, std::int64_t k) {
  const Instruction* root = i.called(b)->root();
  if (!is(root, Opcode::Tuple)) return nullptr;
  const Instruction* leaf = root->operand(k);
  Instruction* argument = i.operand(b + 1);
  if (is(leaf, Opcode::Parameter)) return argument;
  if (!is(leaf, Opcode::GetTupleElement) || !is(leaf->operand(0), Opcode::Parameter)) return nullptr;
  return is(argument, Opcode::Tuple) ? argument->operand(leaf->tuple_index()) : nullptr;
}

Instruction* passed_on_by_all(Instruction& i, std::int64_t k) {
  Instruction* value = passed_on(i, 0, k);
  for (std::int64_t b = 1; value != nullptr && b < static_cast<std::int64_t>(i.called().size()); ++b)
    if (passed_on(i, b, k) != value) return nullptr;
  return value;
}

bool is_read(const Instruction& i) { return !i.users().empty() || i.is_root(); }

// Whether all reads of the tuple `i` name one element.
bool is_read_by_element(const Instruction& i) {
  return i.shape().is_tuple() && !i.is_root() &&
         std::ranges::all_of(i.users(), [](const Instruction* u) { return is(u, Opcode::GetTupleElement); });
}

Changed read_around(Instruction& i) {
  auto changed = Changed::No;
  const std::vector<Instruction*> users = i.users();
  for (Instruction* user : users) {
    if (!is_read(*user)) continue;
    Instruction* value = passed_on_by_all(i, user->tuple_index());
    if (value == nullptr) continue;
    i.parent()->replace_uses(user, value);
    changed = Changed::Yes;
  }
  return changed;
}

// Keeps the elements of `state` in `new_index` (-1: goes), whose readers have been told.
void renumber(const std::vector<Instruction*>& reads, const std::vector<std::int64_t>& new_index) {
  for (Instruction* read : reads)
    read->mutable_attr<hlo::TupleElementAttr>().index = new_index[static_cast<std::size_t>(read->tuple_index())];
}

struct Kept {
  std::vector<std::int64_t> leaves, new_index;
};

// The elements of a tuple of `n` that some instruction of `reads` reads and uses.
Kept kept_of(std::size_t n, const std::vector<Instruction*>& reads) {
  Kept kept{{}, std::vector<std::int64_t>(n, -1)};
  std::vector<bool> needed(n);
  for (const Instruction* read : reads)
    if (is_read(*read)) needed[static_cast<std::size_t>(read->tuple_index())] = true;
  for (std::size_t k = 0; k < n; ++k) {
    if (!needed[k]) continue;
    kept.new_index[k] = static_cast<std::int64_t>(kept.leaves.size());
    kept.leaves.push_back(static_cast<std::int64_t>(k));
  }
  return kept;
}

Instruction* tuple_of(Instruction* whole, const Kept& kept) {
  Make make(*whole);
  std::vector<Instruction*> elements;
  for (const std::int64_t k : kept.leaves) elements.push_back(make.element(whole, k));
  return make.tuple(elements);
}

void remove_unread(hlo::Computation& c, const std::vector<Instruction*>& reads) {
  std::unordered_set<const Instruction*> unread;
  for (const Instruction* read : reads)
    if (!is_read(*read)) unread.insert(read);
  c.remove_all([&](const Instruction& i) { return unread.contains(&i); });
}

Changed remove_unread_results(Instruction& i) {
  const Kept kept = kept_of(i.shape().elements().size(), i.users());
  if (kept.leaves.size() == kept.new_index.size()) return Changed::No;
  remove_unread(*i.parent(), i.users());
  for (hlo::Computation* branch : i.called()) branch->set_root(tuple_of(branch->root(), kept));
  renumber(i.users(), kept.new_index);
  i.set_shape(i.called(0)->root()->shape());
  return Changed::Yes;
}

Changed remove_unread_arguments(Instruction& i, std::int64_t b, Liveness& liveness) {
  hlo::Computation& branch = *i.called(b);
  Instruction* parameter = branch.parameter(0);
  if (!is_read_by_element(*parameter)) return Changed::No;
  // Only reads by what lives count.
  const std::int64_t removed = remove_dead_instructions(branch, liveness);
  const auto changed = removed > 0 ? Changed::Yes : Changed::No;
  const Kept kept = kept_of(parameter->shape().elements().size(), parameter->users());
  if (kept.leaves.size() == kept.new_index.size()) return changed;
  i.replace_operand(b + 1, tuple_of(i.operand(b + 1), kept));
  renumber(parameter->users(), kept.new_index);
  parameter->set_shape(i.operand(b + 1)->shape());
  return Changed::Yes;
}

// --- The pass ------------------------------------------------------------------------------------------------------

class Simplifier {
 public:
  explicit Simplifier(hlo::Module& module) : classes_(module), liveness_(module) {
    for (const auto& [callee, callers] : hlo::callers(module)) num_calls_[callee] = callers.size();
  }

  Changed simplify(hlo::Computation& computation) {
    auto changed = Changed::No;
    std::vector<Instruction*> conditionals;
    for (Instruction& i : computation.instructions())
      if (is(&i, Opcode::Conditional)) conditionals.push_back(&i);
    std::unordered_set<const Instruction*> gone;
    for (Instruction* i : conditionals) {
      const std::int64_t before = computation.num_instructions();
      if (Instruction* with = replacement(*i)) {
        count_calls(computation, before);
        computation.replace_uses(i, with);
        i->drop_control_edges();
        gone.insert(i);
        changed = Changed::Yes;
      } else {
        changed |= trim(*i);
      }
    }
    // Not left to remove_dead: a conditional with a side effect would live on.
    computation.remove_all([&](const Instruction& i) { return gone.contains(&i); });
    return changed;
  }

 private:
  Instruction* replacement(Instruction& i) {
    if (const auto branch = known_branch(i)) return inlined_branch(i, *branch);
    if (all_branches_equal(i, classes_)) return inlined_branch(i, 0);
    return may_select(i) ? selected(i) : nullptr;
  }

  // What copies call is shared with what they are copies of.
  void count_calls(const hlo::Computation& computation, std::int64_t from) {
    for (const Instruction& i : computation.instructions() | std::views::drop(from))
      for (const hlo::Computation* callee : i.called()) ++num_calls_[callee];
  }

  Changed trim(Instruction& i) {
    auto changed = Changed::No;
    while (use_pred(i) || drop_not(i)) changed = Changed::Yes;
    const bool owns = std::ranges::all_of(i.called(), [&](const hlo::Computation* c) { return num_calls_.at(c) == 1; });
    if (!owns) return changed;
    if (is_read_by_element(i)) {
      changed |= read_around(i);
      changed |= remove_unread_results(i);
    }
    for (std::int64_t b = 0; b < static_cast<std::int64_t>(i.called().size()); ++b)
      changed |= remove_unread_arguments(i, b, liveness_);
    return changed;
  }

  ComputationClasses classes_;
  std::unordered_map<const hlo::Computation*, std::size_t> num_calls_;
  Liveness liveness_;
};

}  // namespace

Expected<Changed> simplify_conditionals(hlo::Module& module) {
  auto changed = Changed::No;
  Simplifier simplifier(module);
  std::vector<hlo::Computation*> order;
  for (hlo::Computation& c : module.computations()) order.push_back(&c);
  // Callers first, so that the classes stay true for the conditionals still to come.
  for (auto c = order.rbegin(); c != order.rend(); ++c) changed |= simplifier.simplify(**c);
  return changed;
}

}  // namespace hloom::passes
