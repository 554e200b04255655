#include "passes/separate_memory_spaces.h"

#include <unordered_set>

#include "base/check.h"
#include "base/try.h"
#include "passes/make.h"
#include "passes/propagate_memory_space.h"

namespace hloom::passes {
namespace {

using hlo::Computation;

// `i` with the leaves that lie elsewhere than `wanted` says copied there.
Instruction* copied(Instruction* i, const Shape& wanted) {
  if (same_placement(i->shape(), wanted)) return i;
  Make make(*i);
  if (!wanted.is_tuple()) return make.op(Opcode::Copy, placed_like(i->shape(), wanted), {i});
  std::vector<Instruction*> elements;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(wanted.elements().size()); ++k) {
    Instruction* element = is(i, Opcode::Tuple) ? i->operand(k) : make.element(i, k);
    elements.push_back(copied(element, wanted.element(k)));
  }
  return make.tuple(elements);
}

Changed copy_operand(Instruction& i, std::int64_t n, const Shape& wanted) {
  if (same_placement(i.operand(n)->shape(), wanted)) return Changed::No;
  i.replace_operand(n, copied(i.operand(n), wanted));
  return Changed::Yes;
}

// What only names a value lies where that does; who wants it elsewhere uses a copy.
Changed name_in_place(Instruction& i, const Shape& named) {
  if (same_placement(i.shape(), named)) return Changed::No;
  const Shape wanted = i.shape();
  const std::vector<Instruction*> users = i.users();
  const bool was_root = i.is_root();
  i.set_shape(placed_like(i.shape(), named));
  Instruction* copy = copied(&i, wanted);
  for (Instruction* user : users)
    for (std::int64_t n = 0; n < user->num_operands(); ++n)
      if (user->operand(n) == &i) user->replace_operand(n, copy);
  if (was_root) i.parent()->set_root(copy);
  return Changed::Yes;
}

// A bitcast to other dimensions has the space of what it names, and cuts of its own.
Shape bitcast_in_place(const Instruction& bitcast) {
  const Shape &named = bitcast.operand(0)->shape(), &own = bitcast.shape();
  if (named.dims() == own.dims()) return placed_like(own, named);
  return placed(own, 0, {placement_of(named).space, placement_of(own).splits});
}

Changed settle(Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Tuple: {
      auto changed = Changed::No;
      for (std::int64_t k = 0; k < i.num_operands(); ++k) changed |= copy_operand(i, k, i.shape().element(k));
      return changed;
    }
    case Opcode::GetTupleElement: return name_in_place(i, i.operand(0)->shape().element(i.tuple_index()));
    case Opcode::Bitcast: return name_in_place(i, bitcast_in_place(i));
    case Opcode::AddDependency:
    case Opcode::Domain:
    case Opcode::OptBarrier: return name_in_place(i, i.operand(0)->shape());
    case Opcode::DynamicUpdateSlice: {
      Placement base = placement_of(i.operand(0)->shape());
      base.space = placement_of(i.shape()).space;
      return copy_operand(i, 0, placed(i.operand(0)->shape(), 0, base));
    }
    default: return Changed::No;
  }
}

// `root` with one leaf copied to a place.
Instruction* with_copied_leaf(Instruction* root, std::int64_t leaf, const Placement& to) {
  Make make(*root);
  if (!root->shape().is_tuple()) return make.op(Opcode::Copy, placed(root->shape(), 0, to), {root});
  std::vector<Instruction*> elements;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(root->shape().elements().size()); ++k) {
    Instruction* element = is(root, Opcode::Tuple) ? root->operand(k) : make.element(root, k);
    const std::int64_t count = num_leaves(element->shape());
    elements.push_back(leaf >= 0 && leaf < count ? with_copied_leaf(element, leaf, to) : element);
    leaf -= count;
  }
  return make.tuple(elements);
}

// The first two that do not go together; null if all do.
std::pair<const PlacementRequest*, const PlacementRequest*> conflict(const std::vector<PlacementRequest>& requests) {
  std::unordered_map<FusedValues::Id, const PlacementRequest*> asked;
  for (const PlacementRequest& r : requests) {
    const PlacementRequest* first = asked.emplace(r.value, &r).first->second;
    if (!(first->placement == r.placement)) return {first, &r};
  }
  return {nullptr, nullptr};
}

Expected<Changed> separate(Instruction& fusion) {
  Computation& fused = *fusion.called(0);
  auto changed = Changed::No;
  for (;; changed = Changed::Yes) {
    const FusedValues values = TRY(FusedValues::of(fused));
    const std::vector<PlacementRequest> requests = placement_requests(fusion, values);
    const auto [first, second] = conflict(requests);
    if (first == nullptr) return changed;
    // Two operands are two values. So one of the two is a result, or the base of an update; that is copied.
    if (second->through != nullptr) {
      Instruction& update = *second->through;
      update.replace_operand(0, with_copied_leaf(update.operand(0), 0, second->placement));
    } else {
      HLOOM_CHECK(second->from.operand < 0);
      fused.set_root(with_copied_leaf(fused.root(), second->from.leaf, second->placement));
    }
  }
}

}  // namespace

Expected<Changed> separate_memory_spaces(hlo::Module& module) {
  if (!has_placements(module)) return Changed::No;
  std::unordered_set<const Computation*> fused;
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (is(&i, Opcode::Fusion)) fused.insert(i.called(0));
  auto changed = Changed::No;
  for (Computation& c : module.computations()) {
    if (fused.contains(&c)) continue;
    auto here = Changed::No;
    for (Instruction* i : c.post_order()) {
      here |= settle(*i);
      if (!is(i, Opcode::Fusion)) continue;
      const Changed one = TRY(separate(*i));
      here |= one;
    }
    if (any(here)) c.sort();
    changed |= here;
  }
  return changed;
}

}  // namespace hloom::passes
