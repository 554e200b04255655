#include "kernels/row_passes.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/check.h"
#include "fusion/column_sums.h"
#include "fusion/cost.h"
#include "fusion/form_rows.h"

namespace hloom::kernels {

using fusion::Extent;
using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr std::int64_t kMaxScratch = 1 << 20;  // bytes for each worker: what stays in the second cache

// About what one element costs, in loads.
double own_cost(const Instruction& i) {
  const DType type = i.shape().dtype();
  const bool narrow = is_floating(type) && bit_width(type) < 32;
  switch (i.opcode()) {
    case Opcode::Parameter: return narrow ? 1.5 : 1;
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Reshape: return 0;
    case Opcode::Convert: return narrow ? 4 : 1;
    case Opcode::Divide:
    case Opcode::Sqrt: return 5;
    case Opcode::Transpose:
    case Opcode::Gather: return 4;
    default: return (fusion::is_cheap(i) ? 1.0 : 20.0) * (narrow ? 4 : 1);
  }
}

class PassPlanner {
 public:
  PassPlanner(const Instruction& fusion, const std::vector<Root>& roots) : roots_(roots) {
    for (const Instruction* i : fusion.called(0)->post_order()) order_.push_back(i);
    const auto reduces = fusion::row_reduces(*fusion.called(0));
    HLOOM_CHECK(!reduces.empty());
    p_.space = *fusion::row_space(*reduces[0]);
    p_.extents = fusion::tied_extents(reduces, p_.space, [](const Instruction&) { return true; });
    for (const Instruction* i : order_)
      if (fusion::is_column_sum(*i)) take(*i);
  }

  RowPasses plan() && {
    number();
    place_roots();
    // What is kept makes cheaper what is computed from it: that may need no keeping then.
    do hold();
    while (drop_cheap());
    return std::move(p_);
  }

 private:
  void take(const Instruction& column_sum) {
    const fusion::ColumnSum sum = *fusion::column_sum(column_sum, p_.space);
    p_.extents.emplace(sum.value, Extent::Full);
    p_.blocks = sum.blocks;
    summed_.emplace(&column_sum, sum.value);
  }

  bool is_full(const Instruction* i) const {
    const auto found = p_.extents.find(i);
    return found != p_.extents.end() && found->second == Extent::Full;
  }
  bool is_row(const Instruction* i) const {
    const auto found = p_.extents.find(i);
    return found != p_.extents.end() && found->second == Extent::Row;
  }

  // depth_: the last pass that a value waits for.
  void number() {
    int last = 0;
    for (const Instruction* i : order_) {
      int depth = 0;
      for (const Instruction* o : i->operands()) depth = std::max(depth, depth_[o]);
      const bool is_sum = i->opcode() == Opcode::Reduce && is_row(i);
      depth_[i] = is_sum ? ++depth : depth;
      last = std::max(last, depth);
      p_.reduces.resize(static_cast<std::size_t>(last) + 1);
      if (is_sum) p_.reduces[static_cast<std::size_t>(depth)].push_back(i);
    }
  }

  void place_roots() {
    int last = p_.num_passes();
    for (const Root& r : roots_)
      if (is_full(r.instruction) || summed_.contains(r.instruction)) last = std::max(last, depth_[r.instruction] + 1);
    const auto size = static_cast<std::size_t>(last) + 1;
    p_.reduces.resize(size);
    p_.full_roots.resize(size);
    p_.row_roots.resize(size);
    p_.column_roots.resize(size);
    for (const Root& r : roots_) {
      const auto depth = static_cast<std::size_t>(depth_[r.instruction]);
      if (summed_.contains(r.instruction))
        p_.column_roots[depth + 1].push_back(&r);
      else if (is_full(r.instruction))
        p_.full_roots[depth + 1].push_back(&r);
      else if (is_row(r.instruction))
        p_.row_roots[depth].push_back(&r);
      else
        p_.others.push_back(r);
    }
  }

  const Root* root_of(const Instruction* i) const {
    const auto found = std::ranges::find(roots_, i, &Root::instruction);
    return found == roots_.end() ? nullptr : &*found;
  }

  // From users to operands: in which passes a value is needed, less what users keep for themselves.
  void hold() {
    HLOOM_CHECK(p_.num_passes() < 63);
    p_.held.clear();
    p_.scratch_bytes = 0;
    needed_.clear();
    for (const Instruction* i : order_) cost(i);
    for (std::size_t p = 1; p < p_.reduces.size(); ++p) {
      for (const Instruction* r : p_.reduces[p]) need(r->operand(0), std::uint64_t{1} << p);
      for (const Root* r : p_.full_roots[p]) need(r->instruction, std::uint64_t{1} << p);
      for (const Root* r : p_.column_roots[p]) need(summed_.at(r->instruction), std::uint64_t{1} << p);
    }
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      const Instruction* i = *at;
      std::uint64_t passes = needed_[i];
      if (!is_full(i) || passes == 0 || i->opcode() == Opcode::Parameter) continue;
      if (std::popcount(passes) > 1 && try_hold(*i, passes)) passes &= ~passes + 1;
      if (i->opcode() == Opcode::Reduce) continue;
      for (const Instruction* o : i->operands()) need(o, passes);
    }
  }

  // Takes back what is kept in scratch for nothing; says whether there was any.
  bool drop_cheap() {
    std::unordered_set<const Instruction*> kept;
    for (const Held& h : p_.held) kept.insert(h.value);
    bool dropped = false;
    for (const Instruction* i : order_) {
      cost(i);
      if (!kept.contains(i)) continue;
      const auto found = std::ranges::find(p_.held, i, &Held::value);
      if (found->result == nullptr && !pays(*i, static_cast<double>(found->needed.size()), nullptr)) {
        cheap_.insert(i);
        dropped = true;
      }
      cost_[i] = 1;
    }
    return dropped;
  }

  void need(const Instruction* i, std::uint64_t passes) {
    if (is_full(i)) needed_[i] |= passes;
  }

  void cost(const Instruction* i) {
    double sum = own_cost(*i);
    if (is_row(i) || fusion::is_free(*i))
      sum = 0;
    else if (i->opcode() != Opcode::Reduce)
      for (const Instruction* o : i->operands()) sum += cost_[o];
    cost_[i] = sum;
  }

  // Whether to keep it costs less than to make it `again` times more. A result is written anyway.
  bool pays(const Instruction& i, double again, const Root* root) {
    return cost_[&i] * again > (root != nullptr ? again : 2 * again + 1);
  }

  bool try_hold(const Instruction& i, std::uint64_t passes) {
    const Root* root = root_of(&i);
    if (cheap_.contains(&i) || !pays(i, std::popcount(passes) - 1, root)) return false;
    Held held;
    held.value = &i;
    held.made = std::countr_zero(passes);
    held.result = root;
    for (int p = held.made + 1; p < 64; ++p)
      if ((passes >> p & 1) != 0) held.needed.push_back(p);
    if (root == nullptr) {
      const std::int64_t bytes = (p_.space.columns() * byte_width(i.shape().dtype()) * p_.rows_together() + 63) / 64 * 64;
      if (p_.scratch_bytes + bytes > kMaxScratch) return false;
      held.scratch_offset = p_.scratch_bytes;
      p_.scratch_bytes += bytes;
    }
    p_.held.push_back(std::move(held));
    return true;
  }

  std::vector<const Instruction*> order_;
  const std::vector<Root>& roots_;
  RowPasses p_;
  std::unordered_map<const Instruction*, const Instruction*> summed_;  ///< by sum over rows: the value that it sums up
  std::unordered_map<const Instruction*, int> depth_;
  std::unordered_map<const Instruction*, std::uint64_t> needed_;
  std::unordered_map<const Instruction*, double> cost_;
  std::unordered_set<const Instruction*> cheap_;  ///< not kept
};

}  // namespace

RowPasses row_passes(const Instruction& fusion, const std::vector<Root>& roots) { return PassPlanner(fusion, roots).plan(); }

}  // namespace hloom::kernels
