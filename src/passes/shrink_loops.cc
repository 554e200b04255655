#include "passes/shrink_loops.h"

#include <algorithm>
#include <map>

#include "passes/liveness.h"
#include "passes/loop.h"
#include "passes/make.h"
#include "passes/numbering.h"

namespace hloom::passes {
namespace {

constexpr std::int64_t kMaxSunkBytes = 1024;

std::vector<Instruction*> reads_of(const Instruction& state, std::int64_t leaf) {
  std::vector<Instruction*> reads;
  for (Instruction* user : state.users())
    if (is(user, Opcode::GetTupleElement) && user->tuple_index() == leaf) reads.push_back(user);
  return reads;
}

bool is_read(const Instruction& i) { return !i.users().empty() || i.is_root(); }

// --- Leaves that stay as they are ----------------------------------------------------------------------------------

// Something that costs nothing to make again: a small constant, spread or not, or an iota.
bool is_cheap(const Instruction* i) {
  if (is(i, Opcode::Broadcast) || is(i, Opcode::Reshape)) return is_cheap(i->operand(0));
  if (is(i, Opcode::Iota)) return true;
  return is(i, Opcode::Constant) && i->shape().is_array() && i->shape().size_bytes() <= kMaxSunkBytes;
}

Instruction* copy_into(hlo::Computation& to, const Instruction& i) {
  std::vector<Instruction*> operands;
  for (const Instruction* operand : i.operands()) operands.push_back(copy_into(to, *operand));
  return to.add_clone(i, std::move(operands));
}

// Lets the reads of the leaf use a copy of `value`, the read that goes round again aside.
Changed sink(hlo::Computation& computation, std::int64_t leaf, const Instruction& value) {
  auto changed = Changed::No;
  Instruction* root = computation.root();
  for (Instruction* read : reads_of(*computation.parameter(0), leaf)) {
    const bool goes_round = read->users().size() == 1 && is(root, Opcode::Tuple) && root->operand(leaf) == read;
    if (!is_read(*read) || goes_round) continue;
    Instruction* copy = copy_into(computation, value);
    computation.replace_uses(read, copy);
    // Still an invariant leaf.
    if (is(root, Opcode::Tuple) && root->operand(leaf) == copy) root->replace_operand(leaf, read);
    changed = Changed::Yes;
  }
  return changed;
}

Changed use_invariant(const Loop& loop, std::int64_t leaf) {
  auto changed = Changed::No;
  Instruction* value = loop.initial(leaf);
  if (value == nullptr) return changed;
  for (Instruction* read : reads_of(loop.instruction(), leaf)) {
    if (!is_read(*read)) continue;
    loop.instruction().parent()->replace_uses(read, value);
    changed = Changed::Yes;
  }
  if (!is_cheap(value)) return changed;
  changed |= sink(loop.body(), leaf, *value);
  return changed | sink(loop.condition(), leaf, *value);
}

// --- Leaves that are always equal ----------------------------------------------------------------------------------

// For each leaf the first one that is equal to it at all times. At first all that start equal are taken to be equal;
// what an iteration makes of them then tells them apart, until it does no more.
std::vector<std::int64_t> first_equal(const Loop& loop, const ComputationClasses& classes, Effects& effects) {
  const std::int64_t n = loop.num_leaves();
  std::vector<std::int64_t> first(static_cast<std::size_t>(n));
  std::map<const Instruction*, std::int64_t> by_initial;
  for (std::int64_t k = 0; k < n; ++k) {
    const Instruction* start = loop.initial(k);
    first[static_cast<std::size_t>(k)] = start == nullptr ? k : by_initial.emplace(start, k).first->second;
  }
  const std::vector<Instruction*> order = loop.body().post_order();
  constexpr int kMaxSplits = 8;
  for (int split = 0; split < kMaxSplits; ++split) {
    Numbering numbering(classes);
    std::vector<int> leaf_numbers;
    for (std::int64_t k = 0; k < n; ++k) leaf_numbers.push_back(numbering.fresh());
    std::unordered_map<const Instruction*, int> numbers;
    for (Instruction* i : order) {
      const auto leaf = Loop::leaf_read(*i);
      std::vector<int> operands;
      for (const Instruction* o : i->operands()) operands.push_back(numbers.at(o));
      const bool unique =
          is(i, Opcode::Parameter) || hlo::kind(i->opcode()) == hlo::OpcodeKind::Collective || effects.of(*i);
      const std::size_t read = leaf ? static_cast<std::size_t>(first[static_cast<std::size_t>(*leaf)]) : 0;
      numbers.emplace(i, leaf     ? leaf_numbers[read]
                         : unique ? numbering.fresh()
                                  : numbering.number(*i, std::move(operands)).number);
    }
    std::map<std::pair<std::int64_t, int>, std::int64_t> parts;
    std::vector<std::int64_t> finer(static_cast<std::size_t>(n));
    for (std::int64_t k = 0; k < n; ++k) {
      const std::pair part(first[static_cast<std::size_t>(k)], numbers.at(loop.next(k)));
      finer[static_cast<std::size_t>(k)] = parts.emplace(part, k).first->second;
    }
    if (finer == first) return first;
    first = std::move(finer);
  }
  for (std::int64_t k = 0; k < n; ++k) first[static_cast<std::size_t>(k)] = k;  // not settled: nothing is known
  return first;
}

Changed use_first(Instruction& state, std::int64_t leaf, std::int64_t first, const Instruction* root) {
  auto changed = Changed::No;
  for (Instruction* read : reads_of(state, leaf)) {
    // What only goes round as itself is removed with the leaf.
    if (!is_read(*read) || (read->users().size() == 1 && root && root->operand(leaf) == read)) continue;
    state.parent()->replace_uses(read, Make(*read).element(&state, first));
    changed = Changed::Yes;
  }
  return changed;
}

Changed merge_equal_leaves(const Loop& loop, const ComputationClasses& classes, Effects& effects) {
  auto changed = Changed::No;
  if (!is(loop.body().root(), Opcode::Tuple)) return changed;
  const std::vector<std::int64_t> first = first_equal(loop, classes, effects);
  for (std::int64_t k = 0; k < loop.num_leaves(); ++k) {
    const std::int64_t other = first[static_cast<std::size_t>(k)];
    if (other == k) continue;
    changed |= use_first(*loop.body().parameter(0), k, other, loop.body().root());
    changed |= use_first(*loop.condition().parameter(0), k, other, nullptr);
    changed |= use_first(loop.instruction(), k, other, nullptr);
  }
  return changed;
}

// --- Leaves that nobody needs --------------------------------------------------------------------------------------

// Which leaves the loop's users, its condition, its side effects, or needed leaves need.
class Needed {
 public:
  Needed(const Loop& loop, Effects& effects) : loop_(loop), needed_(static_cast<std::size_t>(loop.num_leaves())) {
    for (const Instruction* user : loop.instruction().users()) {
      if (is(user, Opcode::GetTupleElement))
        is_read(*user) ? need(user->tuple_index()) : void();
      else
        need_all();
    }
    if (loop.instruction().is_root()) need_all();
    need(loop.condition().root());
    for (const hlo::Computation* c : {&loop.condition(), &loop.body()})
      for (const Instruction& i : c->instructions())
        if (effects.of(i)) need(&i);
    follow();
  }
  bool operator[](std::int64_t k) const { return needed_[static_cast<std::size_t>(k)]; }

 private:
  void need_all() {
    for (std::int64_t k = 0; k < loop_.num_leaves(); ++k) need(k);
  }
  void need(std::int64_t leaf) {
    if (needed_[static_cast<std::size_t>(leaf)]) return;
    needed_[static_cast<std::size_t>(leaf)] = true;
    const Instruction* next = loop_.next(leaf);
    need(next == nullptr ? loop_.body().root() : next);
  }
  void need(const Instruction* i) {
    if (seen_.insert(i).second) stack_.push_back(i);
  }
  void follow() {
    while (!stack_.empty()) {
      const Instruction* i = stack_.back();
      stack_.pop_back();
      if (const auto leaf = Loop::leaf_read(*i)) {
        need(*leaf);
        continue;
      }
      if (is(i, Opcode::Parameter)) need_all();
      for (const Instruction* operand : i->operands()) need(operand);
      for (const Instruction* before : i->control_predecessors()) need(before);
    }
  }

  const Loop& loop_;
  std::vector<bool> needed_;
  std::unordered_set<const Instruction*> seen_;
  std::vector<const Instruction*> stack_;
};

void renumber_reads(const Instruction& state, const std::vector<std::int64_t>& new_index) {
  for (Instruction* user : state.users())
    if (is(user, Opcode::GetTupleElement))
      user->mutable_attr<hlo::TupleElementAttr>().index = new_index[static_cast<std::size_t>(user->tuple_index())];
}

// The tuple of the kept elements of `tuple`.
Instruction* kept_elements(Instruction* tuple, const std::vector<std::int64_t>& kept) {
  Make make(*tuple);
  std::vector<Instruction*> elements;
  for (const std::int64_t k : kept) elements.push_back(make.element(tuple, k));
  return make.tuple(elements);
}

// Reads of leaves that go would have no index: they are dead once the root is the shorter tuple, and go first.
void remove_leaves(const Loop& loop, const std::vector<std::int64_t>& kept, Liveness& liveness) {
  std::vector<std::int64_t> new_index(static_cast<std::size_t>(loop.num_leaves()), -1);
  for (std::size_t n = 0; n < kept.size(); ++n)
    new_index[static_cast<std::size_t>(kept[n])] = static_cast<std::int64_t>(n);
  loop.body().set_root(kept_elements(loop.body().root(), kept));
  const Shape shape = loop.body().root()->shape();
  for (hlo::Computation* c : {&loop.condition(), &loop.body()}) {
    remove_dead_instructions(*c, liveness);
    c->parameter(0)->set_shape(shape);
    renumber_reads(*c->parameter(0), new_index);
  }
  Instruction& instruction = loop.instruction();
  instruction.replace_operand(0, kept_elements(instruction.operand(0), kept));
  instruction.set_shape(shape);
  std::unordered_set<const Instruction*> unread;
  for (const Instruction* user : instruction.users())
    if (new_index[static_cast<std::size_t>(user->tuple_index())] < 0) unread.insert(user);
  instruction.parent()->remove_all([&](const Instruction& i) { return unread.contains(&i); });
  renumber_reads(instruction, new_index);
}

Changed remove_unneeded(const Loop& loop, Effects& effects) {
  const Needed needed(loop, effects);
  std::vector<std::int64_t> kept;
  for (std::int64_t k = 0; k < loop.num_leaves(); ++k)
    if (needed[k]) kept.push_back(k);
  if (kept.empty() || static_cast<std::int64_t>(kept.size()) == loop.num_leaves()) return Changed::No;
  Liveness liveness(loop.instruction().module());
  remove_leaves(loop, kept, liveness);
  return Changed::Yes;
}

Changed shrink(const Loop& loop, const ComputationClasses& classes, Effects& effects) {
  auto changed = Changed::No;
  for (std::int64_t k = 0; k < loop.num_leaves(); ++k)
    if (loop.is_invariant(k)) changed |= use_invariant(loop, k);
  changed |= merge_equal_leaves(loop, classes, effects);
  return changed | remove_unneeded(loop, effects);
}

std::vector<Loop> loops_in(const hlo::Computation& computation) {
  std::vector<Loop> loops;
  for (Instruction& i : computation.instructions())
    if (const auto loop = Loop::of(i)) loops.push_back(*loop);
  return loops;
}

}  // namespace

Expected<Changed> shrink_loops(hlo::Module& module) {
  auto changed = Changed::No;
  // What a loop calls is changed only after the loop has been: so the classes stay true for those still to come.
  const ComputationClasses classes(module);
  const auto callers = hlo::callers(module);
  Effects effects;
  std::vector<hlo::Computation*> order;
  for (hlo::Computation& c : module.computations()) order.push_back(&c);
  // Callers first: a constant sinks through a nest in one run.
  for (auto c = order.rbegin(); c != order.rend(); ++c)
    for (const Loop& loop : loops_in(**c))
      if (callers.at(&loop.body()).size() == 1 && callers.at(&loop.condition()).size() == 1)
        changed |= shrink(loop, classes, effects);
  return changed;
}

}  // namespace hloom::passes
