#include "buffers/decisions.h"

#include <algorithm>

#include "buffers/in_place.h"
#include "buffers/parts.h"
#include "buffers/steps.h"
#include "buffers/timeline.h"
#include "buffers/values.h"
#include "indexing/plan_window_update.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Kind = InPlaceDecision::Kind;

namespace {

const Instruction* behind_views(const Instruction* i) {
  while (i->opcode() == Opcode::Bitcast || i->opcode() == Opcode::Reshape || i->opcode() == Opcode::GetTupleElement)
    i = i->operand(0);
  return i;
}

// What makes leaf `leaf` of a fusion's result, or the instruction itself.
const Instruction& maker(const Instruction& i, std::int64_t leaf) {
  if (i.opcode() != Opcode::Fusion) return i;
  const Instruction* root = i.called(0)->root();
  while (root->opcode() == Opcode::Tuple) {
    std::int64_t k = 0;
    for (std::int64_t count = num_leaves(root->operand(0)->shape()); leaf >= count;
         count = num_leaves(root->operand(k)->shape())) {
      leaf -= count;
      ++k;
    }
    root = root->operand(k);
  }
  return *behind_views(root);
}

class Undone {
 public:
  Undone(const hlo::Module& module, std::vector<InPlaceDecision>& to) : module_(module), timeline_(module), to_(to) {}

  void run() {
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions()) {
        if (is_alias(i) || i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant) continue;
        const auto shapes = leaves(i.shape());
        for (std::size_t leaf = 0; leaf < shapes.size(); ++leaf) {
          add_update(i, static_cast<std::int64_t>(leaf), leaf_bytes(*shapes[leaf]));
          if (!parts_of(i)) add_concatenate(i, static_cast<std::int64_t>(leaf));
        }
      }
    for (const hlo::InputOutputAlias& a : module_.config().aliases) add_donation(a);
  }

 private:
  int depth(const Instruction& i) const { return timeline_.of(*i.parent()).depth; }

  void add_update(const Instruction& i, std::int64_t leaf, std::int64_t bytes) {
    if (!step_computations(i).empty() || !indexing::is_window_update(i, leaf)) return;
    const auto pairs = in_place_pairs(i);
    if (std::ranges::find(pairs, leaf, &InPlacePair::result) != pairs.end()) return;
    const indexing::WindowUpdatePlan plan = indexing::plan_window_update(i, leaf);
    const std::string reason = plan.in_place() ? "another result is written over the base" : plan.reason;
    to_.push_back({update_kind(i, leaf), i.name(), leaf, bytes, depth(i), false, reason, {}});
  }

  // Pieces that are computed where they lie are in place; arrays of their own are copied.
  void add_concatenate(const Instruction& i, std::int64_t leaf) {
    const Instruction& concatenate = maker(i, leaf);
    if (concatenate.opcode() != Opcode::Concatenate) return;
    constexpr std::size_t kNamed = 8;
    std::int64_t bytes = 0;
    std::vector<std::string> copied;
    for (const Instruction* operand : concatenate.operands()) {
      const Instruction* piece = behind_views(operand);
      if (&concatenate != &i && piece->opcode() != Opcode::Parameter) continue;
      bytes += leaf_bytes(operand->shape());
      const Instruction& array = &concatenate == &i ? *piece : *i.operand(piece->parameter_number());
      copied.push_back(array.name());
    }
    std::string reason;
    for (std::size_t n = 0; n < std::min(copied.size(), kNamed); ++n)
      reason += (n == 0 ? "arrays of their own are copied into it: " : ", ") + copied[n];
    if (copied.size() > kNamed) reason += " and " + std::to_string(copied.size() - kNamed) + " more";
    to_.push_back({Kind::Concatenate, i.name(), leaf, bytes, depth(i), copied.empty(), reason, {}});
  }

  static const Shape& at(const Shape& shape, const ShapeIndex& index) {
    const Shape* s = &shape;
    for (const std::int64_t k : index) s = &s->element(k);
    return *s;
  }

  void add_donation(const hlo::InputOutputAlias& a) {
    const Instruction& parameter = *module_.entry()->parameter(a.parameter);
    const Shape &before = at(parameter.shape(), a.parameter_index), &after = at(module_.entry()->root()->shape(), a.output);
    if (a.must_alias || before.is_tuple() || before.dims() != after.dims() || same_storage(before, after)) return;
    to_.push_back({Kind::Donation, parameter.name(), 0, 0, 0, false,
                   "the result lies in another layout than the parameter: donate it in the result's", {}});
  }

  const hlo::Module& module_;
  const Timeline timeline_;
  std::vector<InPlaceDecision>& to_;
};

}  // namespace

Kind update_kind(const Instruction& i, std::int64_t leaf) {
  switch (maker(i, leaf).opcode()) {
    case Opcode::DynamicUpdateSlice: return Kind::Update;
    case Opcode::Scatter: return Kind::Scatter;
    default: return Kind::Alias;
  }
}

void append_undone(const hlo::Module& module, std::vector<InPlaceDecision>& decisions) {
  Undone(module, decisions).run();
}

}  // namespace hloom::buffers
