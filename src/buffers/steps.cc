#include "buffers/steps.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

std::vector<Computation*> step_computations(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::AsyncStart: return i.called();
    default: return {};
  }
}

std::vector<Computation*> step_computations(const hlo::Module& module) {
  std::vector<Computation*> order{module.entry()};
  std::unordered_set<const Computation*> seen{module.entry()};
  for (std::size_t n = 0; n < order.size(); ++n)
    for (const Instruction& i : order[n]->instructions())
      for (Computation* callee : step_computations(i))
        if (seen.insert(callee).second) order.push_back(callee);
  return order;
}

Expected<> unshare_steps(hlo::Module& module) {
  constexpr std::size_t kMostComputations = 1 << 16;
  std::unordered_set<const Computation*> taken{module.entry()};
  std::vector<Computation*> order{module.entry()};
  for (std::size_t n = 0; n < order.size(); ++n)
    for (Instruction& i : order[n]->instructions()) {
      const bool runs_steps = !step_computations(i).empty();
      if (!runs_steps && i.opcode() != Opcode::Fusion) continue;
      std::vector<Computation*> called = i.called();
      for (Computation*& callee : called) {
        if (!taken.insert(callee).second) callee = module.clone_computation(*callee, callee->name());
        taken.insert(callee);
        if (runs_steps) order.push_back(callee);
      }
      i.set_called(std::move(called));
      if (order.size() > kMostComputations)
        return fail(Code::ResourceExhausted, i.name(), ": computations shared by calls become more than ",
                    kMostComputations, " copies");
    }
  return {};
}

namespace {

bool keeps_bytes_in_order(const Shape& from, const Shape& to) {
  const auto row_major = [](const Shape& s) {
    return !s.has_layout() || (s.layout().is_plain() && s.layout().is_descending());
  };
  return row_major(from) && row_major(to) && from.layout().memory_space() == to.layout().memory_space();
}

}  // namespace

bool is_alias(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::AddDependency:
    case Opcode::AllGatherDone:
    case Opcode::AllReduceDone:
    case Opcode::AsyncDone:
    case Opcode::AsyncUpdate:
    case Opcode::Bitcast:
    case Opcode::CollectivePermuteDone:
    case Opcode::CopyDone:
    case Opcode::Domain:
    case Opcode::GetTupleElement:
    case Opcode::OptBarrier:
    case Opcode::Tuple: return true;
    case Opcode::Reshape: return keeps_bytes_in_order(i.operand(0)->shape(), i.shape());
    default: return false;
  }
}

OperandLeaves operand_leaves(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::CopyStart: return {num_leaves(i.operand(0)->shape()), num_leaves(i.operand(0)->shape())};
    case Opcode::AllGatherStart:
    case Opcode::CollectivePermuteStart: return {0, num_leaves(i.shape().element(0))};
    default: return {};
  }
}

const Instruction* start_of(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::AllGatherDone:
    case Opcode::AllReduceDone:
    case Opcode::AsyncDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::CopyDone: return i.operand(0);
    default: return nullptr;
  }
}

std::int64_t leaf_bytes(const Shape& leaf) { return leaf.is_array() ? leaf.size_bytes() : 0; }

std::int64_t space_of(const Shape& leaf) {
  return leaf.is_array() && leaf.has_layout() ? leaf.layout().memory_space() : 0;
}

std::int64_t arena_space(const Shape& leaf) {
  constexpr std::int64_t kConstants = 3;
  const std::int64_t space = space_of(leaf);
  return space == kConstants ? 0 : space;
}

std::int64_t workspace_bytes(const Instruction& i) {
  const auto& decisions = i.annotations().decisions;
  const auto found = decisions.find("workspace_bytes");
  std::int64_t bytes = 0;
  if (found != decisions.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), bytes);
  return std::max<std::int64_t>(bytes, 0);
}

bool is_plain_copy(const Instruction& i) {
  return i.opcode() == Opcode::Copy && i.shape().is_array() && i.shape() == i.operand(0)->shape();
}

}  // namespace hloom::buffers
