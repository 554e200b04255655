#include "passes/fetch_ahead.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/liveness.h"
#include "passes/loop.h"
#include "passes/make.h"
#include "passes/placement.h"

namespace hloom::passes {
namespace {

using hlo::Computation;

constexpr std::int64_t kMuchWork = 64 << 10;  // bytes beside which a fetch may go on

bool is_beside(const Instruction& i) { return i.annotations().decisions.contains("beside"); }

// A window taken from an array in another memory space, as it lies there.
bool is_fetch(const Instruction& i) {
  if (!is_beside(i) || !i.shape().is_array() || (!is(&i, Opcode::Copy) && !is(&i, Opcode::DynamicSlice))) return false;
  const Shape& from = i.operand(0)->shape();
  return placement_of(from).space != placement_of(i.shape()).space &&
         from.layout().unplaced() == i.shape().layout().unplaced();
}

// The window that `fetch` takes, which nothing else uses; null if it takes all of an array.
Instruction* window_of(Instruction& fetch) {
  Instruction* window = is(&fetch, Opcode::DynamicSlice) ? &fetch : fetch.operand(0);
  if (!is(window, Opcode::DynamicSlice) || !has_scalar_starts(*window)) return nullptr;
  return window == &fetch || (has_one_use(window) && window->control_predecessors().empty()) ? window : nullptr;
}

std::vector<Instruction*> fetches_in(const Computation& c) {
  std::vector<Instruction*> fetches;
  for (Instruction& i : c.instructions())
    if (is_fetch(i)) fetches.push_back(&i);
  return fetches;
}

// --- An iteration ahead --------------------------------------------------------------------------------------------

/// What a fetch in a loop's body is computed from, if that is only where the counter stands and what the loop leaves
/// as it is.
class Window {
 public:
  Window(const Loop& loop, const Counter& counter, Instruction& fetch) : loop_(loop), counter_(counter), fetch_(fetch) {
    known_ = is_known(&fetch);
  }

  bool is_known() const { return known_; }
  bool contains(const Instruction& i) const { return cone_.contains(&i); }

  Instruction* of_next_iteration() const {
    return copy_into(loop_.body(), [&](const Instruction& read) { return loop_.next(*Loop::leaf_read(read)); });
  }
  Instruction* of_first_iteration() const {
    return copy_into(*loop_.instruction().parent(),
                     [&](const Instruction& read) { return loop_.initial(*Loop::leaf_read(read)); });
  }

 private:
  bool is_known(const Instruction* i) {
    if (const auto leaf = Loop::leaf_read(*i)) {
      reads_.insert(i);
      return *leaf == counter_.leaf || loop_.is_invariant(*leaf);
    }
    if (!is_cheap(*i) || !i->control_predecessors().empty() || !i->control_successors().empty()) return false;
    if (!cone_.insert(i).second) return true;
    return std::ranges::all_of(i->operands(), [&](const Instruction* operand) { return is_known(operand); });
  }

  bool is_cheap(const Instruction& i) const {
    if (&i == &fetch_ || is(&i, Opcode::Constant)) return true;
    if (is(&i, Opcode::DynamicSlice) || is(&i, Opcode::Bitcast)) return &i == fetch_.operand(0) || i.shape().is_scalar();
    return i.shape().is_scalar() && hlo::is_elementwise(i.opcode());
  }

  template <typename Given>
  Instruction* copy_into(Computation& to, const Given& given) const {
    std::unordered_map<const Instruction*, Instruction*> copies;
    const auto copy = [&](const auto& self, const Instruction& i) -> Instruction* {
      if (reads_.contains(&i)) return given(i);
      if (const auto found = copies.find(&i); found != copies.end()) return found->second;
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i.operands()) operands.push_back(self(self, *operand));
      return copies[&i] = to.add_clone(i, std::move(operands), i.name() + ".ahead");
    };
    return copy(copy, fetch_);
  }

  const Loop& loop_;
  const Counter& counter_;
  Instruction& fetch_;
  std::unordered_set<const Instruction*> cone_, reads_;
  bool known_ = false;
};

bool is_only_read_by_leaf(const Instruction& tuple) {
  return !tuple.is_root() && std::ranges::all_of(tuple.users(), [](const Instruction* user) {
    return is(user, Opcode::GetTupleElement);
  });
}

// A body that does nothing else has nothing that a fetch may go on beside.
bool works_beside(const Computation& body, const Window& window) {
  std::int64_t bytes = 0;
  for (const Instruction& i : body.instructions()) {
    const bool works = hlo::kind(i.opcode()) != hlo::OpcodeKind::Movement &&
                       hlo::kind(i.opcode()) != hlo::OpcodeKind::Structural && !is(&i, Opcode::Copy);
    if (!works || window.contains(i)) continue;
    if (is(&i, Opcode::While) || is(&i, Opcode::Conditional)) return true;
    for (const Instruction* operand : i.operands())
      if (operand->shape().is_array()) bytes += operand->shape().size_bytes();
  }
  return bytes >= kMuchWork;
}

Instruction* with_element(Instruction* tuple, Instruction* element) {
  Make make(*tuple);
  std::vector<Instruction*> elements;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(tuple->shape().elements().size()); ++k)
    elements.push_back(is(tuple, Opcode::Tuple) ? tuple->operand(k) : make.element(tuple, k));
  elements.push_back(element);
  return make.tuple(elements);
}

// The loop carries the window: it reads what the iteration before fetched.
void carry(const Loop& loop, Instruction& fetch, const Window& window) {
  Instruction& instruction = loop.instruction();
  Computation& body = loop.body();
  const std::int64_t leaf = loop.num_leaves();
  Instruction* next = with_element(body.root(), window.of_next_iteration());
  Instruction* first = with_element(instruction.operand(0), window.of_first_iteration());
  const Shape state = next->shape();
  for (Computation* c : {&loop.condition(), &body}) c->parameter(0)->set_shape(state);
  body.replace_uses(&fetch, Make(fetch).element(body.parameter(0), leaf));
  body.set_root(next);
  instruction.replace_operand(0, first);
  instruction.set_shape(state);
}

bool fetches_ahead(Instruction& instruction, Liveness& liveness) {
  const auto loop = Loop::of(instruction);
  if (!loop || !is_only_read_by_leaf(instruction)) return false;
  if (!is(loop->body().root(), Opcode::Tuple) || !is(instruction.operand(0), Opcode::Tuple)) return false;
  const auto counter = find_counter(*loop);
  if (!counter || counter->trips < 2) return false;
  bool changed = false;
  for (Instruction* fetch : fetches_in(loop->body())) {
    const Window window(*loop, *counter, *fetch);
    if (fetch->is_root() || window_of(*fetch) == nullptr || !window.is_known() || !works_beside(loop->body(), window)) continue;
    carry(*loop, *fetch, window);
    changed = true;
  }
  if (!changed) return false;
  remove_dead_instructions(loop->body(), liveness);
  loop->body().sort();
  instruction.parent()->sort();
  return true;
}

// --- One step ------------------------------------------------------------------------------------------------------

bool fetch_in_one_step(Instruction& fetch) {
  Instruction* window = window_of(fetch);
  if (window == nullptr) return false;
  Computation& c = *fetch.parent();
  Computation& fused = *c.module().add_computation(fetch.name());
  std::vector<Instruction*> parameters;
  for (const Instruction* operand : window->operands())
    parameters.push_back(
        fused.add_parameter(static_cast<std::int64_t>(parameters.size()), operand->shape(), operand->name()));
  Instruction* slice = fused.add_clone(*window, parameters, window->name());
  slice->mutable_annotations().decisions.clear();
  Instruction* root = window == &fetch ? slice : fused.add_clone(fetch, {slice}, fetch.name());
  root->mutable_annotations().decisions.clear();
  fused.set_root(root);
  Instruction* fusion = c.add(Opcode::Fusion, fetch.shape(), window->operands(), fetch.name());
  fusion->set_called({&fused});
  fusion->mutable_annotations() = fetch.annotations();
  for (Instruction* before : fetch.control_predecessors()) fusion->add_control_predecessor(before);
  for (Instruction* after : fetch.control_successors()) after->add_control_predecessor(fusion);
  fetch.drop_control_edges();
  c.replace_uses(&fetch, fusion);
  c.remove(&fetch);
  if (window != &fetch) c.remove(window);
  return true;
}

}  // namespace

Expected<Changed> fetch_ahead(hlo::Module& module) {
  std::vector<Computation*> with_fetches;
  for (Computation& c : module.computations())
    if (!fetches_in(c).empty()) with_fetches.push_back(&c);
  if (with_fetches.empty()) return Changed::No;
  auto changed = Changed::No;
  if (!module.config().is_scheduled) {
    Liveness liveness(module);
    const auto callers = hlo::callers(module);
    for (std::size_t n = with_fetches.size(); n-- > 0;) {
      Computation* c = with_fetches[n];
      const auto called_by = callers.find(c);
      if (called_by == callers.end() || called_by->second.size() != 1) continue;
      Instruction& caller = *called_by->second.front();
      if (!is(&caller, Opcode::While) || caller.body() != c || !fetches_ahead(caller, liveness)) continue;
      with_fetches.push_back(caller.parent());  // the first iteration's
      changed = Changed::Yes;
    }
  }
  for (Computation* c : with_fetches) {
    auto here = Changed::No;
    for (Instruction* fetch : fetches_in(*c))
      if (fetch_in_one_step(*fetch)) here = Changed::Yes;
    if (any(here)) c->sort();
    changed |= here;
  }
  return changed;
}

}  // namespace hloom::passes
