// One loop over rows; inside it a nest for each pass. What a pass has made is remembered at its point, so that later ones find it
// instead of making it again.
#include "kernels/plan_rows.h"

#include <algorithm>
#include <bit>

#include "base/try.h"
#include "fusion/column_sums.h"
#include "hlo/identity.h"
#include "kernels/elements.h"
#include "kernels/row_passes.h"

namespace hloom::kernels {

using fusion::Extent;
using hlo::Instruction;
using hlo::Opcode;

namespace {

/// One index for each dimension of the space.
using Coordinates = std::vector<Index>;

class RowPlanner {
 public:
  RowPlanner(Builder& b, const Instruction& fusion, const Places& places, const std::vector<Root>& roots, std::int64_t blocks)
      : b_(b), fusion_(fusion), places_(places), blocks_(blocks), p_(row_passes(fusion, roots)), space_(p_.space),
        elements_(b, [this](std::int64_t n, const ShapeIndex& leaf, const Point& point, Value mask) -> Expected<Value> {
          return b_.load(operand_place(fusion_, places_, n, leaf), point, mask);
        }) {
    Kernel& kernel = b_.kernel();
    scratch_ = static_cast<int>(kernel.arguments.size());
    kernel.scratch_bytes = std::max(kernel.scratch_bytes, p_.scratch_bytes);
    for (std::size_t d = 0; d < space_.dims.size(); ++d) (space_.reduced[d] ? along_ : over_).push_back(d);
    if (p_.blocks == 0) order_rows();  // sums over rows take them in the order of dimensions
    for (const Instruction& i : fusion.called(0)->instructions())
      if (i.shape().is_array()) widest_ = std::max<std::int64_t>(widest_, byte_width(i.shape().dtype()));
  }

  Expected<std::vector<Root>> plan() {
    TRY(space_.by_lanes ? row_by_row() : rows_in_lanes());
    return std::move(p_.others);
  }

 private:
  // --- Rows one by one, each by lanes.

  Expected<> row_by_row() {
    const std::int64_t rows = space_.rows();
    Index row;
    if (p_.blocks > 0) {
      block_ = index_of(b_.begin_loop(0, p_.blocks, 0, blocks_ > 1 ? 1 : 0));
      for (const auto& roots : p_.column_roots)
        for (const Root* root : roots) TRY(begin_sums(*root));
      row = index_of(b_.begin_loop(0, rows / p_.blocks)) + block_ * (rows / p_.blocks);
    } else {
      row = index_of(b_.begin_loop(0, rows, 0, block_of(rows)));
    }
    Coordinates at(space_.dims.size());
    set(at, over_, b_.delinearise(row, extents(over_)));
    TRY(store_rows(0, at));
    for (int p = 1; p <= p_.num_passes(); ++p) {
      TRY(pass_by_lanes(p, at));
      TRY(store_rows(p, at));
    }
    b_.end_loop();
    if (p_.blocks > 0) b_.end_loop();
    return {};
  }

  // --- Sums over rows: each lies in its result, which a block of rows has to itself, while the rows go by.

  Expected<> begin_sums(const Root& root) {
    const Instruction& reduce = *root.instruction;
    const Value initial = TRY(elements_.at(*reduce.operand(1), {}));
    const std::int64_t columns = space_.columns();
    const Index lane = index_of(b_.begin_loop(0, columns, plain_lanes(0, columns)));
    Coordinates at(space_.dims.size());
    set(at, along_, b_.delinearise(lane, extents(along_)));
    b_.store(root.place, sum_point(reduce, at), initial);
    b_.end_loop();
    return {};
  }

  Expected<Value> sum_with(const Root& root, const Coordinates& at) {
    const Instruction& reduce = *root.instruction;
    const Value x = TRY(full(*fusion::column_sum(reduce, space_)->value, at));
    return combine(reduce, b_.load(root.place, sum_point(reduce, at)), x);
  }

  Point sum_point(const Instruction& reduce, const Coordinates& at) const {
    const fusion::ColumnSum sum = *fusion::column_sum(reduce, space_);
    std::vector<int> axes = *fusion::axes_of(sum.value->shape(), space_, Extent::Full);
    if (sum.block_dim >= 0) axes.insert(axes.begin() + sum.block_dim, -1);
    Point point;
    for (int d = 0; d < std::ssize(axes); ++d) {
      if (std::ranges::find(reduce.dimensions(), d) != reduce.dimensions().end()) continue;
      const int axis = axes[static_cast<std::size_t>(d)];
      point.push_back(d == sum.block_dim ? block_ : axis < 0 ? Index{} : at[static_cast<std::size_t>(axis)]);
    }
    return point;
  }

  Expected<> pass_by_lanes(int p, const Coordinates& row) {
    const auto& reduces = p_.reduces[static_cast<std::size_t>(p)];
    std::vector<std::size_t> outer, inner;
    for (const std::size_t d : along_) (d < space_.first_lane_dim ? outer : inner).push_back(d);
    std::int64_t extent = 1;
    for (const std::size_t d : inner) extent *= space_.dims[d];
    const int lanes = reduces.empty() ? plain_lanes(p, extent) : hlo::order_of(*reduces[0]).lanes();
    std::vector<Value> identities;
    for (const Instruction* r : reduces)
      identities.push_back(b_.constant(sum_type(*r), hlo::identity_bits(hlo::reduce_op(*r), sum_type(*r))));
    const auto step = [&](const Point& window, const std::vector<Value>& sofar) -> Expected<std::vector<Value>> {
      const Index lane = index_of(b_.begin_loop(0, extent, lanes));
      std::vector<Value> partial;
      for (std::size_t k = 0; k < reduces.size(); ++k)
        partial.push_back(b_.add_fold(hlo::reduce_op(*reduces[k]), identities[k]));
      Coordinates at = row;
      set(at, outer, window);
      set(at, inner, b_.delinearise(lane, extents(inner)));
      const std::vector<Value> next = TRY(body(p, at, partial));
      std::vector<Value> totals = sofar;
      for (std::size_t k = 0; k < reduces.size(); ++k) {
        b_.set_fold_next(k, next[k]);
        totals[k] = b_.loop().folds[k].carry.result;
      }
      b_.end_loop();
      for (std::size_t k = 0; k < reduces.size(); ++k) totals[k] = combine(*reduces[k], sofar[k], totals[k]);
      return totals;
    };
    const std::vector<Value> totals = TRY(elements_.walk(extents(outer), identities, step));
    for (std::size_t k = 0; k < reduces.size(); ++k) {
      const Value initial = TRY(elements_.at(*reduces[k]->operand(1), {}));
      remember_sum(*reduces[k], row, combine(*reduces[k], elements_.convert(initial, sum_type(*reduces[k])), totals[k]));
    }
    return {};
  }

  // Elements at once where no sum asks for a number: several vectors where there is little to do.
  int plain_lanes(int p, std::int64_t extent) const {
    std::int64_t lanes = 64 / widest_;
    const std::size_t stores = p_.full_roots[static_cast<std::size_t>(p)].size() + p_.column_roots[static_cast<std::size_t>(p)].size();
    if (stores <= 2) lanes *= 2;
    const auto enough = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
    return static_cast<int>(std::max<std::int64_t>(2, std::min(lanes, enough)));
  }

  // --- Rows side by side, one in each lane, element by element.

  Expected<> rows_in_lanes() {
    // The innermost of the dimensions over rows goes by lanes.
    const std::int64_t side_by_side = over_.empty() ? 1 : space_.dims[over_.back()];
    const std::int64_t whole = side_by_side / kRowLanes, rest = side_by_side % kRowLanes;
    if (whole > 0) TRY(columns(0, whole, kRowLanes));
    if (rest > 0) TRY(columns(whole * kRowLanes, 1, rest));
    return {};
  }

  // The rows whose innermost index is first + n·count + l for n in [0, groups) and l in [0, count).
  Expected<> columns(std::int64_t first, std::int64_t groups, std::int64_t count) {
    std::vector<std::size_t> outer = over_;
    if (!outer.empty()) outer.pop_back();
    std::vector<std::int64_t> box = extents(outer);
    box.push_back(groups);
    std::int64_t steps = 1;
    for (const std::int64_t n : box) steps *= n;
    Point walked = b_.delinearise(index_of(b_.begin_loop(0, steps, 0, block_of(steps))), box);
    const auto lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(count)));
    lane_ = index_of(b_.begin_loop(0, count, lanes > 1 ? lanes : 0));
    Coordinates at(space_.dims.size());
    if (!over_.empty()) at[over_.back()] = walked.back() * count + lane_ + first;
    walked.pop_back();
    set(at, outer, walked);
    TRY(store_rows(0, at));
    for (int p = 1; p <= p_.num_passes(); ++p) {
      TRY(pass_one_by_one(p, at));
      TRY(store_rows(p, at));
    }
    b_.end_loop();
    b_.end_loop();
    return {};
  }

  Expected<> pass_one_by_one(int p, const Coordinates& row) {
    const auto& reduces = p_.reduces[static_cast<std::size_t>(p)];
    std::vector<Value> initial;
    for (const Instruction* r : reduces) {
      const Value v = TRY(elements_.at(*r->operand(1), {}));
      initial.push_back(elements_.convert(v, sum_type(*r)));
    }
    const auto step = [&](const Point& window, const std::vector<Value>& sofar) -> Expected<std::vector<Value>> {
      Coordinates at = row;
      set(at, along_, window);
      return body(p, at, sofar);
    };
    const std::vector<Value> totals = TRY(elements_.walk(extents(along_), initial, step));
    for (std::size_t k = 0; k < reduces.size(); ++k) remember_sum(*reduces[k], row, totals[k]);
    return {};
  }

  // --- What both share.

  // One element of every array that pass p makes; the sums so far with it.
  Expected<std::vector<Value>> body(int p, const Coordinates& at, std::vector<Value> sofar) {
    for (const Held& held : p_.held)
      if (std::ranges::find(held.needed, p) != held.needed.end())
        elements_.remember(*held.value, point_of(*held.value, Extent::Full, at), {}, recall(held, at));
    const auto& reduces = p_.reduces[static_cast<std::size_t>(p)];
    for (std::size_t k = 0; k < reduces.size(); ++k) {
      const Value x = TRY(full(*reduces[k]->operand(0), at));
      sofar[k] = combine(*reduces[k], sofar[k], elements_.convert(x, sum_type(*reduces[k])));
    }
    for (const Held& held : p_.held)
      if (held.made == p && held.result == nullptr) {
        const Value v = TRY(full(*held.value, at));
        b_.store_linear(scratch_, scratch_index(held, at), v);
      }
    // All values first: an operand may be a result's own memory.
    std::vector<std::pair<const Root*, Value>> stores, sums;
    for (const Root* root : p_.full_roots[static_cast<std::size_t>(p)]) {
      const Value v = TRY(full(*root->instruction, at));
      stores.emplace_back(root, v);
    }
    for (const Root* root : p_.column_roots[static_cast<std::size_t>(p)]) {
      const Value v = TRY(sum_with(*root, at));
      sums.emplace_back(root, v);
    }
    for (const auto& [root, v] : stores) b_.store(root->place, point_of(*root->instruction, Extent::Full, at), v);
    for (const auto& [root, v] : sums) b_.store(root->place, sum_point(*root->instruction, at), v);
    return sofar;
  }

  Expected<> store_rows(int p, const Coordinates& row) {
    for (const Root* root : p_.row_roots[static_cast<std::size_t>(p)]) {
      const Point point = point_of(*root->instruction, Extent::Row, row);
      const Value v = TRY(elements_.at(*root->instruction, point));
      b_.store(root->place, point, v);
    }
    return {};
  }

  Expected<Value> full(const Instruction& i, const Coordinates& at) { return elements_.at(i, point_of(i, Extent::Full, at)); }

  void remember_sum(const Instruction& reduce, const Coordinates& row, Value total) {
    elements_.remember(reduce, point_of(reduce, Extent::Row, row), {}, elements_.convert(total, reduce.shape().dtype()));
  }

  Value combine(const Instruction& reduce, Value a, Value b) {
    return b_.line(hlo::reduce_op(reduce), sum_type(reduce), {a, b});
  }

  static DType sum_type(const Instruction& reduce) {
    return hlo::accumulator(hlo::reduce_op(reduce), reduce.shape().dtype());
  }

  Value recall(const Held& held, const Coordinates& at) {
    if (held.result != nullptr) return b_.load(held.result->place, point_of(*held.value, Extent::Full, at));
    return b_.load_linear(scratch_, scratch_index(held, at), held.value->shape().dtype());
  }

  Index scratch_index(const Held& held, const Coordinates& at) const {
    Point along;
    for (const std::size_t d : along_) along.push_back(at[d]);
    Index index = Builder::linearise(along, extents(along_));
    if (!space_.by_lanes) index = index * p_.rows_together() + lane_;
    return index + held.scratch_offset / byte_width(held.value->shape().dtype());
  }

  Point point_of(const Instruction& i, Extent extent, const Coordinates& at) const {
    Point point;
    const std::vector<int> axes = *fusion::axes_of(i.shape(), space_, extent);
    for (const int axis : axes)
      point.push_back(axis < 0 ? Index{} : at[static_cast<std::size_t>(axis)]);
    return point;
  }

  static void set(Coordinates& at, const std::vector<std::size_t>& dims, const Point& values) {
    for (std::size_t n = 0; n < dims.size(); ++n) at[dims[n]] = values[n];
  }

  std::vector<std::int64_t> extents(const std::vector<std::size_t>& dims) const {
    std::vector<std::int64_t> result;
    for (const std::size_t d : dims) result.push_back(space_.dims[d]);
    return result;
  }

  std::int64_t block_of(std::int64_t steps) const { return blocks_ > 1 ? (steps + blocks_ - 1) / blocks_ : 0; }

  // Rows follow each other as they lie in the memory of the reduced array.
  void order_rows() {
    const Shape& shape = p_.reduces[1][0]->operand(0)->shape();
    const auto axes = *fusion::axes_of(shape, space_, Extent::Full);
    std::vector<std::size_t> ordered;
    const auto& minor_to_major = shape.layout().minor_to_major;
    for (auto d = minor_to_major.rbegin(); d != minor_to_major.rend(); ++d) {
      const int axis = axes[static_cast<std::size_t>(*d)];
      if (axis >= 0 && !space_.reduced[static_cast<std::size_t>(axis)]) ordered.push_back(static_cast<std::size_t>(axis));
    }
    over_ = std::move(ordered);
  }

  Builder& b_;
  const Instruction& fusion_;
  const Places& places_;
  std::int64_t blocks_;
  RowPasses p_;
  const fusion::RowSpace& space_;
  Elements elements_;
  int scratch_ = 0;
  std::vector<std::size_t> along_, over_;  ///< dimensions of the space
  Index lane_;                             ///< rows side by side: which of them
  Index block_;                            ///< of rows, where there are sums over rows
  std::int64_t widest_ = 4;
};

}  // namespace

bool is_rows_fusion(const Instruction& fusion) {
  const auto& decisions = fusion.annotations().decisions;
  const auto found = decisions.find("kernel");
  return found != decisions.end() && found->second == "rows";
}

Expected<std::vector<Root>> plan_rows_into(Builder& b, const Instruction& fusion, const Places& places, std::vector<Root> roots,
                                           std::int64_t blocks) {
  return RowPlanner(b, fusion, places, roots, blocks).plan();
}

}  // namespace hloom::kernels
