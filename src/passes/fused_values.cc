#include "passes/fused_values.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

Expected<FusedValues> FusedValues::of(Computation& fused) {
  FusedValues values;
  TRY(values.add(fused, fused));
  values.number();
  return values;
}

Expected<> FusedValues::add(Computation& c, const Computation& outermost) {
  for (Instruction& i : c.instructions()) {
    first_.emplace(&i, all_.size());
    for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) {
      parent_.push_back(all_.size());
      names_.push_back(false);
      all_.push_back({&i, leaf});
    }
  }
  for (Instruction& i : c.instructions()) TRY(visit(i, outermost));
  return {};
}

Expected<> FusedValues::visit(Instruction& i, const Computation& outermost) {
  switch (i.opcode()) {
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::While:
      return fail(Code::InvalidArgument, i.name(), ": a ", i.opcode(), " in the fused computation ", outermost.name(),
                  ", whose values have to be plain; open-fusions takes such a fusion apart");
    case Opcode::Tuple: {
      std::int64_t first = 0;
      for (const Instruction* operand : i.operands())
        for (std::int64_t leaf = 0; leaf < num_leaves(operand->shape()); ++leaf) name(i, first++, *operand, leaf);
      return {};
    }
    case Opcode::GetTupleElement: {
      std::int64_t first = 0;
      for (std::int64_t k = 0; k < i.tuple_index(); ++k) first += num_leaves(i.operand(0)->shape().element(k));
      for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) name(i, leaf, *i.operand(0), first + leaf);
      return {};
    }
    case Opcode::Copy:
      if (i.shape().is_tuple()) name_all(i, *i.operand(0));
      return {};
    case Opcode::AddDependency:
    case Opcode::Domain:
    case Opcode::OptBarrier: name_all(i, *i.operand(0)); return {};
    case Opcode::Fusion:
      TRY(add(*i.called(0), outermost));
      for (std::int64_t k = 0; k < i.num_operands(); ++k) name_all(*i.called(0)->parameter(k), *i.operand(k));
      name_all(i, *i.called(0)->root());
      return {};
    case Opcode::DynamicUpdateSlice: update_instructions_.push_back(&i); return {};
    default: return {};
  }
}

// The one leaf is the other's value by another name.
void FusedValues::name(const Instruction& a, std::int64_t a_leaf, const Instruction& b, std::int64_t b_leaf) {
  names_[at(a, a_leaf)] = true;
  parent_[find(at(a, a_leaf))] = find(at(b, b_leaf));
}

void FusedValues::name_all(const Instruction& a, const Instruction& b) {
  const std::int64_t count = std::min(num_leaves(a.shape()), num_leaves(b.shape()));  // a barrier of several operands
  for (std::int64_t leaf = 0; leaf < count; ++leaf) name(a, leaf, b, leaf);
}

std::size_t FusedValues::at(const Instruction& i, std::int64_t leaf) const {
  return first_.at(&i) + static_cast<std::size_t>(leaf);
}

std::size_t FusedValues::find(std::size_t n) {
  for (; parent_[n] != n; n = parent_[n]) parent_[n] = parent_[parent_[n]];
  return n;
}

// Numbers the values by their first positions.
void FusedValues::number() {
  std::unordered_map<std::size_t, Id> ids;
  for (std::size_t n = 0; n < all_.size(); ++n) {
    const auto [found, added] = ids.emplace(find(n), static_cast<Id>(ids.size()));
    if (added) {
      positions_.emplace_back();
      definitions_.push_back(all_[n]);
    }
    if (!names_[n]) definitions_[static_cast<std::size_t>(found->second)] = all_[n];
    ids_.push_back(found->second);
    positions_[static_cast<std::size_t>(found->second)].push_back(all_[n]);
  }
  for (Instruction* i : update_instructions_) updates_.push_back({i, value(*i, 0), value(*i->operand(0), 0)});
}

bool FusedValues::crosses(Id v) const {
  const std::vector<Position>& all = positions(v);
  return std::ranges::any_of(
      all, [&](const Position& p) { return p.instruction->parent() != all.front().instruction->parent(); });
}

FusedValues::Id FusedValues::value(const Instruction& i, std::int64_t leaf) const { return ids_[at(i, leaf)]; }

}  // namespace hloom::passes
