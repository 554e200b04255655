#include "fusion/column_sums.h"

#include <algorithm>

#include "fusion/form_rows.h"

namespace hloom::fusion {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool is_row_major(const Shape& shape) {
  if (!shape.layout().is_plain()) return false;
  const auto& order = shape.layout().minor_to_major;
  return std::ranges::is_sorted(order, std::ranges::greater());
}

// Whether `reduce` goes over the dimensions of `axes` that are over rows and no other, those of one element aside.
bool reduces_rows(const Instruction& reduce, const std::vector<int>& axes, const RowSpace& space, int block_dim) {
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] < 0) continue;
    const bool is_over = !space.reduced[static_cast<std::size_t>(axes[d])] && static_cast<int>(d) != block_dim;
    const auto& along = reduce.dimensions();
    if ((std::ranges::find(along, static_cast<std::int64_t>(d)) != along.end()) != is_over) return false;
  }
  return true;
}

// The dimension that a bitcast cuts in two, with nothing else changed; -1 if it does another thing.
int cut_dimension(const Shape& from, const Shape& to) {
  if (to.rank() != from.rank() + 1 || !is_row_major(from) || !is_row_major(to) || from.dtype() != to.dtype()) return -1;
  int d = 0;
  while (d < from.rank() && from.dim(d) == to.dim(d)) ++d;
  if (d == from.rank() || to.dim(d) == 1 || to.dim(d + 1) == 1 || to.dim(d) * to.dim(d + 1) != from.dim(d)) return -1;
  for (std::int64_t after = d + 1; after < from.rank(); ++after)
    if (from.dim(after) != to.dim(after + 1)) return -1;
  return d;
}

std::optional<ColumnSum> in_blocks(const Instruction& reduce, const Instruction& bitcast, const RowSpace& space) {
  const Instruction& value = *bitcast.operand(0);
  if (!value.shape().is_array()) return {};
  const int cut = cut_dimension(value.shape(), bitcast.shape());
  auto axes = axes_of(value.shape(), space, Extent::Full);
  if (cut < 0 || !axes) return {};
  const int axis = (*axes)[static_cast<std::size_t>(cut)];
  const auto outermost = std::ranges::find(space.reduced, false) - space.reduced.begin();
  if (axis != outermost) return {};
  axes->insert(axes->begin() + cut, axis);
  if (!reduces_rows(reduce, *axes, space, cut)) return {};
  return ColumnSum{&value, bitcast.shape().dim(cut), cut};
}

}  // namespace

std::optional<ColumnSum> column_sum(const Instruction& reduce, const RowSpace& space) {
  if (reduce.opcode() != Opcode::Reduce || !space.by_lanes || space.rows() == 1) return {};
  const Opcode combine = hlo::reduce_op(reduce);
  if (combine == Opcode::Tuple || hlo::order_of(reduce).by_lanes) return {};
  if (hlo::accumulator(combine, reduce.shape().dtype()) != reduce.shape().dtype()) return {};
  const Instruction& operand = *reduce.operand(0);
  if (const auto axes = axes_of(operand.shape(), space, Extent::Full))
    return reduces_rows(reduce, *axes, space, -1) ? std::optional(ColumnSum{&operand, 1, -1}) : std::nullopt;
  return operand.opcode() == Opcode::Bitcast ? in_blocks(reduce, operand, space) : std::nullopt;
}

bool is_column_sum(const Instruction& i) {
  return i.opcode() == Opcode::Reduce && i.annotations().decisions.contains("columns");
}

std::int64_t column_blocks(const Instruction& fusion) {
  const auto rows = row_reduces(*fusion.called(0));
  if (rows.empty()) return 0;
  const RowSpace space = *row_space(*rows[0]);
  for (const Instruction& i : fusion.called(0)->instructions())
    if (is_column_sum(i)) return column_sum(i, space)->blocks;
  return 0;
}

}  // namespace hloom::fusion
