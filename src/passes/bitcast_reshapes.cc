#include "passes/bitcast_reshapes.h"

#include <algorithm>

#include "passes/layout_graph.h"
#include "passes/make.h"
#include "passes/placement.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

// The sizes of dimensions of more than one element as they lie in memory, if nothing but such ones come or go.
bool only_units_change(const Shape& from, const Shape& to) {
  if (!from.layout().is_plain() || !to.layout().is_plain()) return false;
  if (placement_of(from).space != placement_of(to).space) return false;
  // The n-th dimension of several elements is the n-th of the other: their numbers must lie in one order.
  const auto ranks = [](const Shape& s) {
    Order order = order_of(s), sorted = order;
    std::ranges::sort(sorted);
    for (std::int64_t& d : order) d = std::ranges::find(sorted, d) - sorted.begin();
    return order;
  };
  return without_units(from.dims()) == without_units(to.dims()) && ranks(from) == ranks(to);
}

Instruction* to_bitcast(Instruction& i) {
  if (!is(&i, Opcode::Reshape)) return nullptr;
  if (!is_plain(i) && !only_units_change(i.operand(0)->shape(), i.shape())) return nullptr;
  return Make(i).op(Opcode::Bitcast, i.shape(), {i.operand(0)});
}

}  // namespace

Expected<Changed> bitcast_reshapes(hlo::Module& module) { return rewrite(module, to_bitcast); }

}  // namespace hloom::passes
