#include "buffers/in_place.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "buffers/steps.h"
#include "buffers/values.h"
#include "indexing/plan_window_update.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

const std::string* decision(const Instruction& i, const char* key) {
  const auto& decisions = i.annotations().decisions;
  const auto found = decisions.find(key);
  return found == decisions.end() ? nullptr : &found->second;
}

// "0:2,1:3" as pairs; what does not read so ends the list.
std::vector<InPlacePair> parse_pairs(const std::string& text) {
  std::vector<InPlacePair> pairs;
  const char *at = text.data(), *end = text.data() + text.size();
  while (at < end) {
    InPlacePair pair;
    const auto result = std::from_chars(at, end, pair.result);
    if (result.ec != std::errc() || result.ptr == end || *result.ptr != ':') break;
    const auto operand = std::from_chars(result.ptr + 1, end, pair.operand);
    if (operand.ec != std::errc()) break;
    pairs.push_back(pair);
    at = operand.ptr + (operand.ptr < end && *operand.ptr == ',' ? 1 : 0);
    if (at == operand.ptr) break;
  }
  return pairs;
}

std::int64_t leaf_number(const Shape& shape, const ShapeIndex& index) {
  std::int64_t leaf = 0;
  const Shape* at = &shape;
  for (const std::int64_t k : index) {
    leaf += first_leaf(*at, k);
    at = &at->element(k);
  }
  return leaf;
}

void append_aliasing(const Instruction& i, const std::vector<hlo::Aliasing>& aliasing,
                     std::vector<InPlacePair>& pairs) {
  for (const hlo::Aliasing& a : aliasing)
    pairs.push_back(
        {leaf_number(i.shape(), a.output), a.operand, leaf_number(i.operand(a.operand)->shape(), a.operand_index)});
}

bool fits(const Instruction& i, const InPlacePair& pair) {
  const auto results = leaves(i.shape());
  if (pair.result < 0 || pair.result >= static_cast<std::int64_t>(results.size())) return false;
  if (pair.operand < 0 || pair.operand >= i.num_operands()) return false;
  const auto operands = leaves(i.operand(pair.operand)->shape());
  if (pair.operand_leaf < 0 || pair.operand_leaf >= static_cast<std::int64_t>(operands.size())) return false;
  const Shape &result = *results[static_cast<std::size_t>(pair.result)],
              &operand = *operands[static_cast<std::size_t>(pair.operand_leaf)];
  return leaf_bytes(result) == leaf_bytes(operand) && leaf_bytes(result) > 0 &&
         result.layout().memory_space() == operand.layout().memory_space();
}

// What was decided, or else what the plan of each window update says.
void append_updates(const Instruction& i, std::vector<InPlacePair>& pairs) {
  if (const std::string* text = decision(i, "in_place")) {
    const std::vector<InPlacePair> decided = parse_pairs(*text);
    pairs.insert(pairs.end(), decided.begin(), decided.end());
    return;
  }
  const std::int64_t count = num_leaves(i.shape());
  for (std::int64_t leaf = 0; leaf < count; ++leaf) {
    if (!indexing::is_window_update(i, leaf)) continue;
    const indexing::WindowUpdatePlan plan = indexing::plan_window_update(i, leaf);
    if (plan.in_place() && plan.base_operand >= 0) pairs.push_back({leaf, plan.base_operand, 0});
  }
}

// Each result once, each operand once: the first pair stands.
void drop_conflicts(const Instruction& i, std::vector<InPlacePair>& pairs) {
  std::vector<InPlacePair> kept;
  for (const InPlacePair& p : pairs) {
    const bool taken = std::ranges::any_of(kept, [&](const InPlacePair& k) {
      return k.result == p.result || (k.operand == p.operand && k.operand_leaf == p.operand_leaf);
    });
    if (!taken && fits(i, p)) kept.push_back(p);
  }
  pairs = std::move(kept);
}

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Instruction& i) {
  std::vector<InPlacePair> pairs;
  switch (i.opcode()) {
    case Opcode::DynamicUpdateSlice:
    case Opcode::Scatter: append_updates(i, pairs); break;
    case Opcode::CustomCall: append_aliasing(i, i.attr<hlo::CustomCallAttr>().aliasing, pairs); break;
    case Opcode::Fusion:
      append_aliasing(i, i.attr<hlo::FusionAttr>().aliasing, pairs);
      append_updates(i, pairs);
      break;
    default: return pairs;
  }
  drop_conflicts(i, pairs);
  return pairs;
}

void note_in_place(hlo::Module& module) {
  for (const Computation* c : step_computations(module))
    for (Instruction& i : c->instructions()) {
      std::string text;
      std::string plans;
      for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) {
        if (!indexing::is_window_update(i, leaf)) continue;
        const indexing::WindowUpdatePlan plan = indexing::plan_window_update(i, leaf);
        if (!plans.empty()) plans += "; ";
        plans += std::string(indexing::name(plan.kind)) + (plan.reason.empty() ? "" : ": " + plan.reason);
        if (!plan.in_place() || plan.base_operand < 0) continue;
        if (!text.empty()) text += ",";
        text += std::to_string(leaf) + ":" + std::to_string(plan.base_operand);
      }
      if (plans.empty()) continue;
      i.mutable_annotations().decisions["in_place"] = text;
      i.mutable_annotations().decisions["update_plan"] = plans;
    }
}

namespace {

bool same_elements(const Shape& a, const Shape& b) {
  return a.is_array() && b.is_array() && a.dims() == b.dims() && a.layout() == b.layout();
}

// Sums over rows, of a kernel over rows, or the blocks that they take: an element is read in the pass over its own row.
bool is_column_sum(const Instruction& i) { return i.opcode() == Opcode::Reduce && decision(i, "columns") != nullptr; }
bool goes_into_column_sums(const Instruction& i) {
  if (i.opcode() != Opcode::Bitcast) return is_column_sum(i);
  return !i.users().empty() && std::ranges::all_of(i.users(), [](const Instruction* user) { return is_column_sum(*user); });
}

// Whether all that a fused computation computes from `parameter` has its dimensions and comes to the roots by
// elementwise operations alone, or goes into a sum over a row of a kernel over rows: its row has been read whole before
// the last pass over it, which writes. Elements are what counts: layouts say where they lie in memory, and
// each element's loads come before its stores, however many go at once.
bool is_used_elementwise(const Instruction& parameter) {
  std::unordered_set<const Instruction*> reached{&parameter};
  std::vector<const Instruction*> open{&parameter}, sums;
  while (!open.empty()) {
    const Instruction* at = open.back();
    open.pop_back();
    for (const Instruction* user : at->users()) {
      if (user->opcode() == Opcode::Reduce && user->num_operands() == 2 && decision(*user, "rows")) {
        sums.push_back(user);
        continue;
      }
      if (goes_into_column_sums(*user)) continue;
      const bool is_aligned = is_elementwise(user->opcode()) && user->shape().dims() == parameter.shape().dims();
      if (user->opcode() != Opcode::Tuple && !is_aligned) return false;
      if (reached.insert(user).second) open.push_back(user);
    }
  }
  return std::ranges::none_of(sums, [&](const Instruction* s) { return reached.contains(s->operand(1)); });
}

// A routine reads the whole of a line or matrix before it writes any, and nothing else of this operand.
bool routine_may_overwrite(const Instruction& routine, const Instruction& parameter) {
  switch (routine.opcode()) {
    case Opcode::Cholesky:
    case Opcode::Fft: return true;
    case Opcode::TriangularSolve: return routine.operand(1) == &parameter && routine.operand(0) != &parameter;
    default: return false;
  }
}

/// The passes of a kernel over rows: how many reduces, one after the other, each value needs.
class RowPasses {
 public:
  explicit RowPasses(const Computation& fused) {
    for (const Instruction* i : fused.post_order()) {
      int before = 0;
      for (const Instruction* o : i->operands()) before = std::max(before, sums_[o]);
      const bool is_sum = i->opcode() == Opcode::Reduce && decision(*i, "rows") != nullptr;
      sums_[i] = before + (is_sum ? 1 : 0);
      last_ = std::max(last_, is_sum ? sums_[i] : 0);
      if (is_sum) rows_.push_back(i->shape().dims());
    }
  }
  int sums(const Instruction& i) const { return sums_.at(&i); }
  /// The last pass that makes a sum.
  int last() const { return last_; }
  bool has_one_a_row(const Shape& s) const { return std::ranges::find(rows_, s.dims()) != rows_.end(); }

 private:
  std::unordered_map<const Instruction*, int> sums_;
  int last_ = 0;
  std::vector<std::vector<std::int64_t>> rows_;
};

// Each pass reads all elements at an index before it writes any there. So a result that the last pass writes may lie over
// what passes read; what has one element a row is written when its row is done with.
bool rows_may_overwrite(const Computation& fused, const Instruction& parameter, std::int64_t result) {
  const Instruction& root = *fused.root();
  if (root.opcode() != Opcode::Tuple) return !is_column_sum(root) && root.shape().dims() == parameter.shape().dims();
  const Instruction& written = *root.operand(result);
  if (is_column_sum(written) || written.shape().dims() != parameter.shape().dims()) return false;
  const RowPasses passes(fused);
  int last = passes.last();
  for (const Instruction* leaf : root.operands()) {
    if (!leaf->shape().is_array()) return false;
    if (is_column_sum(*leaf)) {
      last = std::max(last, passes.sums(*leaf) + 1);
      continue;
    }
    const bool is_whole = leaf->shape().dims() == parameter.shape().dims();
    if (!is_whole && !passes.has_one_a_row(leaf->shape())) return false;
    if (is_whole) last = std::max(last, passes.sums(*leaf) + 1);
  }
  return passes.sums(written) + 1 == last;
}

bool fusion_may_overwrite(const Instruction& i, std::int64_t operand, std::int64_t result) {
  const Computation& fused = *i.called(0);
  const Instruction& parameter = *fused.parameter(operand);
  if (i.attr<hlo::FusionAttr>().kind == hlo::FusionKind::Custom) return routine_may_overwrite(*fused.root(), parameter);
  const std::string* kernel = decision(i, "kernel");
  const bool is_rows = kernel != nullptr && *kernel == "rows";
  // One level is written before the next reads.
  if (kernel != nullptr && *kernel == "levels") return false;
  for (const Shape* leaf : leaves(i.shape()))
    if (!is_rows && leaf->dims() != parameter.shape().dims()) return false;
  return is_used_elementwise(parameter) && (!is_rows || rows_may_overwrite(fused, parameter, result)) &&
         in_place_pairs(i).empty();
}

}  // namespace

bool may_overwrite(const Instruction& i, std::int64_t operand, std::int64_t result) {
  const Shape& from = i.operand(operand)->shape();
  const Shape& to = *leaves(i.shape())[static_cast<std::size_t>(result)];
  if (!from.is_array() || !to.is_array() || leaf_bytes(from) != leaf_bytes(to) || !same_elements(from, to))
    return false;
  if (i.opcode() == Opcode::Fusion) return fusion_may_overwrite(i, operand, result);
  return is_elementwise(i.opcode()) && i.opcode() != Opcode::Copy;
}

}  // namespace hloom::buffers
