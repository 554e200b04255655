#include "fusion/row_space.h"

#include <algorithm>

namespace hloom::fusion {

using hlo::Instruction;
using hlo::Opcode;

namespace {

std::int64_t product(const RowSpace& space, bool reduced) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < space.dims.size(); ++d)
    if (space.reduced[d] == reduced) n *= space.dims[d];
  return n;
}

bool is_along(const Instruction& reduce, std::int64_t d) {
  return std::ranges::find(reduce.dimensions(), d) != reduce.dimensions().end();
}

// The dimensions of more than one element, outermost first in memory, as positions among themselves.
std::vector<std::int64_t> physical_order(const Shape& shape) {
  std::vector<std::int64_t> position(shape.dims().size(), -1), order;
  std::int64_t next = 0;
  for (std::int64_t d = 0; d < shape.rank(); ++d)
    if (shape.dim(d) != 1) position[static_cast<std::size_t>(d)] = next++;
  const auto& minor_to_major = shape.layout().minor_to_major;
  for (auto d = minor_to_major.rbegin(); d != minor_to_major.rend(); ++d)
    if (shape.dim(*d) != 1) order.push_back(position[static_cast<std::size_t>(*d)]);
  return order;
}

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> kept;
  std::ranges::copy_if(dims, std::back_inserter(kept), [](std::int64_t n) { return n != 1; });
  return kept;
}

// Whether a reshape or bitcast only adds and drops dimensions of one element.
bool keeps_elements_in_place(const Instruction& i) {
  const Shape &to = i.shape(), &from = i.operand(0)->shape();
  if (to.dtype() != from.dtype() || without_ones(to.dims()) != without_ones(from.dims())) return false;
  return i.opcode() == Opcode::Reshape ||
         (to.layout().is_plain() && from.layout().is_plain() && physical_order(to) == physical_order(from));
}

// Whether dimension p of a broadcast's operand is the axis of the result's dimension that it becomes.
bool broadcasts_along(const Instruction& i, const std::vector<int>& operand, const std::vector<int>& result) {
  for (std::size_t p = 0; p < operand.size(); ++p)
    if (operand[p] >= 0 && operand[p] != result[static_cast<std::size_t>(i.dimensions()[p])]) return false;
  return true;
}

}  // namespace

std::int64_t RowSpace::rows() const { return product(*this, false); }
std::int64_t RowSpace::columns() const { return product(*this, true); }

std::optional<RowSpace> row_space(const Instruction& reduce) {
  if (reduce.opcode() != Opcode::Reduce || reduce_op(reduce) == Opcode::Tuple) return {};
  const Shape& shape = reduce.operand(0)->shape();
  if (shape.num_elements() == 0) return {};
  const hlo::ReduceOrder order = order_of(reduce);
  RowSpace space;
  space.by_lanes = order.by_lanes;
  for (std::int64_t d = 0; d < shape.rank(); ++d) {
    if (order.by_lanes && d == order.first) space.first_lane_dim = space.dims.size();
    if (shape.dim(d) == 1) continue;
    space.dims.push_back(shape.dim(d));
    space.reduced.push_back(is_along(reduce, d));
  }
  if (space.columns() == 1) return {};
  return space;
}

std::optional<std::vector<int>> axes_of(const Shape& shape, const RowSpace& space, Extent extent) {
  if (!shape.is_array()) return {};
  std::vector<int> axes;
  std::size_t next = 0;
  const auto skip = [&] {
    while (extent == Extent::Row && next < space.dims.size() && space.reduced[next]) ++next;
  };
  for (const std::int64_t n : shape.dims()) {
    skip();
    if (n == 1) {
      axes.push_back(-1);
      continue;
    }
    if (next == space.dims.size() || space.dims[next] != n) return {};
    axes.push_back(static_cast<int>(next++));
  }
  skip();
  if (next != space.dims.size()) return {};
  return axes;
}

std::optional<Extent> operand_extent(const Instruction& user, Extent of_user, std::int64_t k, const RowSpace& space) {
  const Shape& shape = user.operand(k)->shape();
  if (!shape.is_array()) return {};
  if (user.opcode() == Opcode::Reduce) {
    if (k != 0 || of_user != Extent::Row || row_space(user) != space) return {};
    return Extent::Full;
  }
  if (user.opcode() == Opcode::Broadcast) {
    const auto result = axes_of(user.shape(), space, of_user);
    if (!result) return {};
    for (const Extent e : {Extent::Row, Extent::Full})
      if (const auto operand = axes_of(shape, space, e); operand && broadcasts_along(user, *operand, *result)) return e;
    return {};
  }
  if (user.opcode() == Opcode::Reshape || user.opcode() == Opcode::Bitcast)
    return keeps_elements_in_place(user) ? std::optional(of_user) : std::nullopt;
  if (!hlo::is_elementwise(user.opcode()) || shape.dims() != user.shape().dims()) return {};
  return of_user;
}

std::optional<Extent> user_extent(const Instruction& user, std::int64_t k, Extent of_operand, const RowSpace& space) {
  for (const Extent e : {Extent::Row, Extent::Full})
    if (axes_of(user.shape(), space, e) && operand_extent(user, e, k, space) == of_operand) return e;
  return {};
}

}  // namespace hloom::fusion
