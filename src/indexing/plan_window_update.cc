// The update writes a window of the base. It may be written while others are still computed only if nothing else that
// is still to be computed reads what the write changes. Inside one kernel that is so if the base is read by nothing but
// the window itself, each element for its own place: then whoever writes an element is the only one to have read it.
// All other reads of the base make a difference, wherever they stand: in the update, in the place of the window, in
// another result of the fusion. Small updates are then computed whole before the first write; large ones are a kernel
// of their own, which costs the size of the update, never of the base.
#include "indexing/plan_window_update.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "base/check.h"

namespace hloom::indexing {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Set = std::unordered_set<const Instruction*>;

bool is(const Instruction* i, Opcode opcode) { return i->opcode() == opcode; }

// Shares its operand's bytes.
bool is_view(const Instruction* i) { return is(i, Opcode::Bitcast) || is(i, Opcode::Reshape); }

const Instruction* behind_views(const Instruction* i) {
  while (is_view(i)) i = i->operand(0);
  return i;
}

bool is_slice(const Instruction* i) { return is(i, Opcode::DynamicSlice) || is(i, Opcode::Slice); }
bool is_update(const Instruction* i) { return is(i, Opcode::DynamicUpdateSlice) || is(i, Opcode::Scatter); }

// The window update, and which of its bases is asked about: a scatter may have several.
struct Target {
  const Instruction* update = nullptr;
  std::int64_t base = 0;

  const Instruction* base_value() const { return update->operand(base); }
  // What is written: the update, or the scatter's updates for this base.
  std::int64_t written_operand() const {
    return is(update, Opcode::DynamicUpdateSlice) ? 1 : update->num_operands() / 2 + 1 + base;
  }
  const Instruction* written() const { return update->operand(written_operand()); }
};

// Leaf `leaf` of a computation's root, as the instruction that makes it and the leaf of that one's result.
Target root_leaf(const Instruction* root, std::int64_t leaf) {
  if (is(root, Opcode::Tuple)) {
    for (const Instruction* element : root->operands()) {
      const std::int64_t n = num_leaves(element->shape());
      if (leaf < n) return root_leaf(element, leaf);
      leaf -= n;
    }
    return {};
  }
  if (is(root, Opcode::GetTupleElement) && is(root->operand(0), Opcode::Scatter))
    return {root->operand(0), root->tuple_index()};
  return {root, leaf};
}

Target find_target(const Instruction& i, std::int64_t leaf) {
  if (!is(&i, Opcode::Fusion)) return is_update(&i) ? Target{&i, leaf} : Target{};
  const Target at_root = root_leaf(i.to_apply()->root(), leaf);
  if (at_root.update == nullptr) return {};
  const Instruction* inner = behind_views(at_root.update);
  if (is(inner, Opcode::GetTupleElement) && is(inner->operand(0), Opcode::Scatter))
    return {inner->operand(0), inner->tuple_index()};
  return is_update(inner) ? Target{inner, is_view(at_root.update) ? 0 : at_root.base} : Target{};
}

// Where a constant start of a dynamic-update-slice puts its window along dimension d.
std::optional<std::int64_t> known_start(const Instruction* update, std::int64_t d) {
  if (update->operand(2)->shape().rank() != 0 || !is(update->operand(2 + d), Opcode::Constant)) return std::nullopt;
  const hlo::Literal& literal = update->operand(2 + d)->literal();
  const std::int64_t value = hlo::element_as_int64(literal, 0);
  const std::int64_t room = update->shape().dim(d) - update->operand(1)->shape().dim(d);
  if (is_unsigned(literal.dtype()) && value < 0) return room;
  return std::clamp<std::int64_t>(value, 0, room);
}

WindowUpdatePlan plan(UpdateKind kind, std::int64_t base_operand, const Target& target, std::string reason) {
  return {kind, base_operand, target.written()->shape().size_bytes(), std::move(reason)};
}

// --- Bare updates --------------------------------------------------------------------------------------------------

// The update is an array of its own, unless it is the base itself seen otherwise.
WindowUpdatePlan plan_bare(const Target& target) {
  const Instruction* base = behind_views(target.base_value());
  if (target.written()->shape().num_elements() == 0)
    return plan(UpdateKind::Elide, target.base, target, "the update has no elements");
  for (std::int64_t n = 0; n < target.update->num_operands(); ++n) {
    if (n == target.base || behind_views(target.update->operand(n)) != base) continue;
    const bool covers = is(target.update, Opcode::DynamicUpdateSlice) && n == 1;
    if (covers && same_dims(target.written()->shape(), target.base_value()->shape()))
      return plan(UpdateKind::Elide, target.base, target, "the update is the base");
    return plan(UpdateKind::OutOfPlace, target.base, target,
                "operand " + std::to_string(n) + " is the base too, so it would be overwritten as it is read");
  }
  return plan(UpdateKind::Direct, target.base, target, "nothing else of the base is read");
}

// --- Fused updates -------------------------------------------------------------------------------------------------

// A fused computation around an update of the array that comes in as parameter `base`.
class Fused {
 public:
  Fused(const Instruction& fusion, const Target& target, const Instruction* parameter)
      : fusion_(fusion), target_(target), base_operand_(parameter->parameter_number()) {
    const Instruction* array = behind_views(fusion.operand(base_operand_));
    for (const Instruction* p : fusion.to_apply()->parameters())
      if (behind_views(fusion.operand(p->parameter_number())) == array) collect_views(p);
    for (std::int64_t n = 0; n < target.update->num_operands(); ++n) {
      if (n == target.base) continue;
      collect_needed(target.update->operand(n), n == target.written_operand() ? needed_ : needed_for_place_);
    }
  }

  WindowUpdatePlan plan() const {
    if (target_.written()->shape().num_elements() == 0) return make(UpdateKind::Elide, "the update has no elements");
    if (is_result(target_.update)) return make(UpdateKind::Split, "the fusion uses the updated array itself");
    bool reads_besides = false;
    for (const Instruction* view : views_) {
      if (is_returned(view)) return make(UpdateKind::OutOfPlace, "the fusion also returns the base");
      for (const Instruction* user : view->users()) {
        if (views_.contains(user) || is_base_of_target(user, view)) continue;
        if (is_update(user) && user != target_.update)
          return make(UpdateKind::OutOfPlace, user->name() + " updates the same base");
        if (serves_another_result(user))
          return make(UpdateKind::Split, user->name() + " reads the base for another result");
        if (!reads_own_place(user)) reads_besides = true;
      }
    }
    if (is_current_window(behind_views(target_.written())))
      return make(UpdateKind::Elide, "the update is what stands in the window");
    if (!reads_besides)
      return make(UpdateKind::Direct, "of the base only the window itself is read, element by element");
    return plan_with_other_reads();
  }

 private:
  WindowUpdatePlan make(UpdateKind kind, std::string reason) const {
    return indexing::plan(kind, base_operand_, target_, std::move(reason));
  }

  WindowUpdatePlan plan_with_other_reads() const {
    if (is(target_.update, Opcode::Scatter))
      return make(UpdateKind::OutOfPlace, "updates are computed from the base while others change it");
    if (is_moved_slice()) return make(UpdateKind::DirectionalMove, "the update is a slice of the base");
    const std::int64_t bytes = target_.written()->shape().size_bytes();
    if (bytes <= kMaxStagedBytes)
      return make(UpdateKind::Staged,
                  "other elements of the base are read; the update is small enough to compute first");
    return make(UpdateKind::Split,
                "other elements of the base are read for an update of " + std::to_string(bytes) + " bytes");
  }

  void collect_views(const Instruction* i) {
    views_.insert(i);
    for (const Instruction* user : i->users())
      if (is_view(user)) collect_views(user);
  }

  // What `i` is computed from, itself included.
  static void collect_needed(const Instruction* i, Set& needed) {
    std::vector<const Instruction*> stack = {i};
    while (!stack.empty()) {
      const Instruction* top = stack.back();
      stack.pop_back();
      if (!needed.insert(top).second) continue;
      stack.insert(stack.end(), top->operands().begin(), top->operands().end());
    }
  }

  // All that is computed from `reader`, itself included, up to the update.
  Set reached_from(const Instruction* reader) const {
    Set reached;
    std::vector<const Instruction*> stack = {reader};
    while (!stack.empty()) {
      const Instruction* top = stack.back();
      stack.pop_back();
      if (top == target_.update || !reached.insert(top).second) continue;
      stack.insert(stack.end(), top->users().begin(), top->users().end());
    }
    return reached;
  }

  bool serves_another_result(const Instruction* reader) const {
    const auto is_for_update = [&](const Instruction* i) {
      return needed_.contains(i) || needed_for_place_.contains(i);
    };
    return !std::ranges::all_of(reached_from(reader), is_for_update);
  }

  bool is_returned(const Instruction* i) const {
    if (i->is_root()) return true;
    return std::ranges::any_of(i->users(),
                               [&](const Instruction* u) { return is(u, Opcode::Tuple) && is_returned(u); });
  }

  // Something other than the root, or views on the way to it, uses the updated array.
  bool is_result(const Instruction* i) const {
    return std::ranges::any_of(i->users(), [&](const Instruction* u) {
      if (is_view(u) || is(u, Opcode::GetTupleElement)) return is_result(u);
      return !is(u, Opcode::Tuple) || !is_returned(u);
    });
  }

  bool is_base_of_target(const Instruction* user, const Instruction* view) const {
    if (user != target_.update || target_.base_value() != view) return false;
    return std::ranges::count(user->operands(), view) == 1;
  }

  // The elements that the update replaces, in their order.
  bool is_current_window(const Instruction* i) const {
    return is_slice(i) && views_.contains(i->operand(0)) && same_dims(i->operand(0)->shape(), target_.base_value()->shape()) &&
           stands_at(*i, *target_.update);
  }

  // Whether each element read is used for its own place alone. Any one element may be read for an update of one.
  bool reads_own_place(const Instruction* reader) const {
    if (!is(target_.update, Opcode::DynamicUpdateSlice)) return false;
    const bool one_element =
        target_.written()->shape().num_elements() == 1 && is_slice(reader) && reader->shape().num_elements() == 1;
    return (is_current_window(reader) || one_element) && keeps_places(reached_from(reader));
  }

  // Only elementwise ops and views, all on the way to the written elements and none to their place.
  bool keeps_places(const Set& path) const {
    const std::int64_t elements = target_.written()->shape().num_elements();
    return std::ranges::all_of(path, [&](const Instruction* i) {
      const bool by_places = is_slice(i) || is_view(i) || (hlo::is_elementwise(i->opcode()) && i->called().empty());
      return by_places && i->shape().num_elements() == elements && !needed_for_place_.contains(i);
    });
  }

  // A contiguous window of the base, of the same rank, is moved as it is.
  bool is_moved_slice() const {
    const Instruction* source = behind_views(target_.written());
    const bool is_dense = is(source, Opcode::DynamicSlice) ||
                          (is(source, Opcode::Slice) && std::ranges::all_of(source->attr<hlo::SliceAttr>().strides,
                                                                            [](std::int64_t s) { return s == 1; }));
    if (!is_dense || !is(target_.update, Opcode::DynamicUpdateSlice) || !views_.contains(source->operand(0)))
      return false;
    if (!same_dims(source->shape(), target_.written()->shape()) ||
        !same_dims(source->operand(0)->shape(), target_.base_value()->shape()))
      return false;
    // Nothing else: the starts of either may not depend on the base.
    const auto reads_base = [&](const Instruction* view) {
      return std::ranges::any_of(view->users(), [&](const Instruction* u) {
        return u != source && u != target_.update && !views_.contains(u);
      });
    };
    return std::ranges::none_of(views_, reads_base);
  }

  const Instruction& fusion_;
  const Target& target_;
  std::int64_t base_operand_;
  Set views_;   // the parameters that are the base, seen as they are or reshaped
  Set needed_, needed_for_place_;  // what the written elements, and where they are written, are computed from
};

}  // namespace

std::string_view name(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::Elide: return "elide";
    case UpdateKind::Direct: return "direct";
    case UpdateKind::Staged: return "staged";
    case UpdateKind::DirectionalMove: return "directional-move";
    case UpdateKind::Split: return "split";
    case UpdateKind::OutOfPlace: return "out-of-place";
  }
  return "";
}

bool is_window_update(const hlo::Instruction& instruction, std::int64_t leaf) {
  return window_update(instruction, leaf) != nullptr;
}

const hlo::Instruction* window_update(const hlo::Instruction& instruction, std::int64_t leaf) {
  return find_target(instruction, leaf).update;
}

bool stands_at(const hlo::Instruction& slice, const hlo::Instruction& update) {
  if (!is(&update, Opcode::DynamicUpdateSlice) || !is_slice(&slice) || !same_dims(slice.shape(), update.operand(1)->shape())) return false;
  if (is(&slice, Opcode::DynamicSlice))
    return std::ranges::equal(slice.operands() | std::views::drop(1), update.operands() | std::views::drop(2));
  const auto& a = slice.attr<hlo::SliceAttr>();
  for (std::int64_t d = 0; d < slice.shape().rank(); ++d) {
    const auto n = static_cast<std::size_t>(d);
    if (a.strides[n] != 1 || known_start(&update, d) != a.starts[n]) return false;
  }
  return true;
}

WindowUpdatePlan plan_window_update(const hlo::Instruction& instruction, std::int64_t leaf) {
  const Target target = find_target(instruction, leaf);
  HLOOM_CHECK(target.update != nullptr);
  if (!is(&instruction, Opcode::Fusion)) return plan_bare(target);
  const Instruction* parameter = behind_views(target.base_value());
  if (!is(parameter, Opcode::Parameter))
    return plan(UpdateKind::OutOfPlace, -1, target, "the base is computed inside the fusion");
  return Fused(instruction, target, parameter).plan();
}

}  // namespace hloom::indexing
