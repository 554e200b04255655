// The grid's cells are rectangles of tiles. A cell copies its rows if they need it, then takes one group of vectors
// after the other: the group's panel is copied if that pays, and all row tiles run over it while it is near. Loops over
// equal tiles are loops; the one or two other sizes have code of their own.
#include "kernels/dot_builder.h"

#include <algorithm>

#include "base/check.h"
#include "base/try.h"

namespace hloom::kernels {

using hlo::Opcode;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr int kPackLanes = 32;

std::int64_t tile_count(std::int64_t total, std::int64_t largest) { return ceil_div(total, largest); }

}  // namespace

DotBuilder::DotBuilder(Builder& builder, const DotFusion& fusion, const Places& places, const DotProblem& problem,
                       const DotForm& form)
    : b_(builder),
      fusion_(fusion),
      p_(problem),
      form_(form),
      elements_(builder, fusion, places),
      row_axis_(form.swapped ? problem.rhs_axis : problem.lhs_axis),
      lane_axis_(form.swapped ? problem.lhs_axis : problem.rhs_axis),
      type_(sum_type_of(*fusion.dot)),
      at_(problem.axes.size()) {
  scratch_ = static_cast<int>(b_.kernel().arguments.size());
}

Expected<std::int64_t> DotBuilder::build() {
  for (std::size_t a = 0; a < p_.axes.size(); ++a)
    if (p_.axes[a].of != DotAxis::Of::Sum && p_.extent(a) == 0) return blocks_;
  for (std::size_t a = 0; a < p_.lhs_axis; ++a) dims_.push_back(p_.extent(a));
  dims_.push_back(form_.row_cells);
  dims_.push_back(form_.lane_cells);
  cell_at_.resize(dims_.size());
  TRY(cells(0, [this] { return cell(); }));
  b_.kernel().scratch_bytes = std::max(b_.kernel().scratch_bytes, scratch_elements_ * byte_width(type_));
  return blocks_;
}

// The outermost loop is shared out and holds as many of the cells' dimensions as the grid needs; the rest are loops.
Expected<> DotBuilder::cells(std::size_t dim, const Body& body) {
  if (dim == 0 && form_.blocks > 1) {
    std::int64_t count = 1;
    while (dim < dims_.size() && count < form_.blocks) count *= dims_[dim++];
    if (count > 1) {
      const std::int64_t block = std::max<std::int64_t>(1, count / form_.blocks);
      blocks_ = ceil_div(count, block);
      const Index all = index_of(b_.begin_loop(0, count, 0, block));
      const auto own = b_.delinearise(all, {dims_.begin(), dims_.begin() + static_cast<std::ptrdiff_t>(dim)});
      std::copy(own.begin(), own.end(), cell_at_.begin());
      const auto done = cells(dim, body);
      b_.end_loop();
      return done;
    }
  }
  if (dim == dims_.size()) return body();
  if (dims_[dim] == 1) return cells(dim + 1, body);
  cell_at_[dim] = index_of(b_.begin_loop(0, dims_[dim]));
  const auto done = cells(dim + 1, body);
  b_.end_loop();
  return done;
}

Expected<> DotBuilder::cell() {
  for (std::size_t a = 0; a < p_.lhs_axis; ++a) at_[a] = cell_at_[a];
  rows_ = {form_.row_cells, 0, 0, cell_at_[p_.lhs_axis], kNoValue, kNoValue};
  groups_ = {form_.lane_cells, 0, 0, cell_at_[p_.lhs_axis + 1], kNoValue, kNoValue};
  return form_.kind == DotForm::Kind::Fold ? fold_cell() : tile_cell();
}

void DotBuilder::open_cell(Cell& cell, std::int64_t tiles) {
  cell.tiles = tiles;
  cell.per_cell = ceil_div(tiles, cell.cells);
  if (cell.cells == 1) return;
  cell.from = b_.affine(cell.number * cell.per_cell);
  cell.to = b_.line(Opcode::Minimum, DType::S64,
                    {b_.affine(cell.number * cell.per_cell + cell.per_cell), b_.constant_index(tiles)});
  b_.set_range(cell.to, {0, tiles});
}

Expected<> DotBuilder::each_tile(const Cell& cell, const DotRun& run,
                                 const std::function<Expected<>(const Index&)>& body) {
  if (run.count == 0) return {};
  if (cell.cells == 1 && run.count == 1) return body(Index{run.first, {}});
  const std::int64_t end = run.tile + run.count;
  Value from = kNoValue, to = kNoValue;
  if (cell.cells > 1) {
    from = b_.line(Opcode::Maximum, DType::S64, {cell.from, b_.constant_index(run.tile)});
    to = b_.line(Opcode::Minimum, DType::S64, {cell.to, b_.constant_index(end)});
  }
  const Index tile = index_of(b_.begin_loop(run.tile, end));
  b_.loop().from_value = from;
  b_.loop().to_value = to;
  const auto done = body(tile * run.size + (run.first - run.tile * run.size));
  b_.end_loop();
  return done;
}

// Of a tile: size·number, and one more for each of the longer tiles before it.
Index DotBuilder::first_element(const Cell& cell, Value tile, std::int64_t total) {
  if (cell.cells == 1) return {};
  const std::int64_t size = total / cell.tiles, longer = total % cell.tiles;
  Index first = index_of(tile) * size;
  if (longer > 0) {
    const Value before = b_.line(Opcode::Minimum, DType::S64, {tile, b_.constant_index(longer)});
    b_.set_range(before, {0, longer});
    first = first + index_of(before);
  }
  return first;
}

Expected<> DotBuilder::after_packing(const Body& body) {
  const Index before = written_;
  written_ = index_of(b_.begin_loop(0, 1));
  const auto done = body();
  b_.end_loop();
  written_ = before;
  return done;
}

// An axis of one element needs no lanes.
Index DotBuilder::begin_lanes(std::int64_t count) {
  if (form_.lanes == 1) return {};
  return index_of(b_.begin_loop(0, count, static_cast<int>(form_.lanes)));
}
void DotBuilder::end_lanes() {
  if (form_.lanes > 1) b_.end_loop();
}

Value DotBuilder::first_lanes(const Index& lane, std::int64_t valid) {
  if (valid == form_.lanes) return kNoValue;
  Line less;
  less.opcode = Opcode::Compare;
  less.operands = {b_.affine(lane), b_.constant_index(valid)};
  less.compare = {hlo::Direction::Lt, hlo::Comparison::Signed};
  return b_.line(std::move(less), DType::Pred);
}

// --- Tiles ---------------------------------------------------------------------------------------------------------

Expected<> DotBuilder::tile_cell() {
  const std::int64_t lanes = p_.extent(lane_axis_), vectors = ceil_div(lanes, form_.lanes);
  open_cell(rows_, tile_count(p_.extent(row_axis_), form_.rows));
  open_cell(groups_, tile_count(vectors, form_.vectors));
  place_scratch();
  const std::int64_t rest = lanes - (vectors - 1) * form_.lanes;  // lanes of the last vector
  const auto all_groups = [&]() -> Expected<> {
    for (const DotRun& run : balanced_runs(vectors, form_.vectors)) {
      // The last group of all has a mask if its last vector is not full.
      const bool masked = run.first + run.size * run.count == vectors && rest != form_.lanes;
      DotRun full = run;
      if (masked) --full.count;
      TRY(each_tile(groups_, full, [&](const Index& first) { return group(full, form_.lanes, first); }));
      if (!masked) continue;
      const DotRun last{run.size, 1, run.first + run.size * full.count, run.tile + full.count};
      TRY(each_tile(groups_, last, [&](const Index& first) { return group(last, rest, first); }));
    }
    return {};
  };
  if (!form_.pack_rows) return all_groups();
  TRY(pack_rows());
  return after_packing(all_groups);
}

// Packed rows of a cell, then a panel, then a tile of sums.
void DotBuilder::place_scratch() {
  const std::int64_t rows = p_.extent(row_axis_), sum = p_.sum_extent();
  const std::int64_t width = form_.vectors * form_.lanes;
  held_rows_ = std::min(rows, ceil_div(rows, rows_.tiles) * rows_.per_cell);
  // No multiple of a large power of two, which would put all rows into the same cache sets.
  row_pitch_ = ceil_div(sum, 16) * 16 + 16;
  panel_base_ = form_.pack_rows ? held_rows_ * row_pitch_ : 0;
  sums_base_ = panel_base_ + (form_.pack_lanes ? sum * width : 0);
  scratch_elements_ = sums_base_ + (form_.store_through ? form_.rows * width : 0);
}

Expected<> DotBuilder::group(const DotRun& run, std::int64_t valid, const Index& first_vector) {
  const Index first_lane = first_vector * form_.lanes;
  const auto tiles = [&]() -> Expected<> {
    for (const DotRun& r : balanced_runs(p_.extent(row_axis_), form_.rows))
      TRY(each_tile(rows_, r, [&](const Index& row) { return tile(r.size, run.size, valid, row, first_lane); }));
    return {};
  };
  if (!form_.pack_lanes) return tiles();
  TRY(pack_panel(run.size, valid, first_lane));
  return after_packing(tiles);
}

Index DotBuilder::sum_index() const {
  Index index;
  for (std::size_t a = p_.rhs_axis + 1; a < p_.axes.size(); ++a) index = index * p_.extent(a) + at_[a];
  return index;
}

// k beside k.
Expected<> DotBuilder::pack_rows() {
  const std::int64_t rows = p_.extent(row_axis_);
  first_packed_row_ = first_element(rows_, rows_.from, rows);
  Value to = kNoValue;
  if (rows_.cells > 1) to = b_.affine(first_element(rows_, rows_.to, rows) + first_packed_row_ * -1);
  const Index row = index_of(b_.begin_loop(0, held_rows_));
  b_.loop().to_value = to;
  if (to != kNoValue) b_.loop().from_value = b_.constant_index(0);
  at_[row_axis_] = first_packed_row_ + row;
  std::size_t loops = 1;
  for (std::size_t a = p_.rhs_axis + 1; a < p_.axes.size(); ++a, ++loops) {
    const bool innermost = a + 1 == p_.axes.size();
    at_[a] = index_of(b_.begin_loop(0, p_.extent(a), innermost ? kPackLanes : 0));
  }
  const Value v = TRY(row_operand());
  b_.store_linear(scratch_, row * row_pitch_ + sum_index(), v);
  while (loops-- > 0) b_.end_loop();
  return {};
}

// A panel has for each k the group's vectors beside each other; the lanes that no element fills are zero.
Expected<> DotBuilder::pack_panel(std::int64_t vectors, std::int64_t valid, const Index& first_lane) {
  const std::int64_t width = vectors * form_.lanes;
  const Index lane = begin_lanes(form_.lanes);
  const Value mask = first_lanes(lane, valid);
  std::size_t loops = 0;
  for (std::size_t a = p_.rhs_axis + 1; a < p_.axes.size(); ++a, ++loops)
    at_[a] = index_of(b_.begin_loop(0, p_.extent(a)));
  for (std::int64_t j = 0; j < vectors; ++j) {
    at_[lane_axis_] = first_lane + lane + j * form_.lanes;
    const Value v = TRY(lane_operand(j + 1 == vectors ? mask : kNoValue));
    b_.store_linear(scratch_, sum_index() * width + lane + (panel_base_ + j * form_.lanes), v);
  }
  while (loops-- > 0) b_.end_loop();
  end_lanes();
  return {};
}

Expected<Value> DotBuilder::row_operand(Value mask) {
  return form_.swapped ? elements_.rhs(p_.axes, at_, mask) : elements_.lhs(p_.axes, at_, mask);
}
Expected<Value> DotBuilder::lane_operand(Value mask) {
  return form_.swapped ? elements_.lhs(p_.axes, at_, mask) : elements_.rhs(p_.axes, at_, mask);
}

Expected<Value> DotBuilder::row_element(const Tile& t, std::int64_t row) {
  if (form_.pack_rows) {
    const Index local = t.first_row + row + first_packed_row_ * -1;
    return b_.load_linear(scratch_, local * row_pitch_ + sum_index() + written_, type_);
  }
  at_[row_axis_] = t.first_row + row;
  return row_operand();
}

Expected<Value> DotBuilder::lane_elements(const Tile& t, std::int64_t vector) {
  if (form_.pack_lanes) {
    const Index at = sum_index() * (t.vectors * form_.lanes) + t.lane + (panel_base_ + vector * form_.lanes);
    return b_.load_linear(scratch_, at + written_, type_);
  }
  at_[lane_axis_] = t.first_lane + t.lane + vector * form_.lanes;
  return lane_operand(vector + 1 == t.vectors ? t.mask : kNoValue);
}

Value DotBuilder::multiply_add(Value a, Value b, Value sum) {
  if (type_ == DType::F32 || type_ == DType::F64) return b_.multiply_add(a, b, sum);
  return b_.line(Opcode::Add, type_, {sum, b_.line(Opcode::Multiply, type_, {a, b})});
}

Expected<> DotBuilder::step(const Tile& t, std::int64_t chain, std::vector<Value>& sums) {
  std::vector<Value> vectors;
  for (std::int64_t j = 0; j < t.vectors; ++j) vectors.push_back(TRY(lane_elements(t, j)));
  auto sum = sums.begin() + chain * t.rows * t.vectors;
  for (std::int64_t i = 0; i < t.rows; ++i) {
    const Value element = TRY(row_element(t, i));
    for (const Value v : vectors) {
      *sum = multiply_add(element, v, *sum);
      ++sum;
    }
  }
  return {};
}

Expected<std::vector<Value>> DotBuilder::sum_axis(std::size_t axis, const Tile& t, std::vector<Value> sums) {
  if (axis + 1 == p_.axes.size()) return sum_innermost(t, std::move(sums));
  at_[axis] = index_of(b_.begin_loop(0, p_.extent(axis)));
  std::vector<Value> inside;
  for (const Value v : sums) inside.push_back(b_.add_carry(v));
  const std::vector<Value> next = TRY(sum_axis(axis + 1, t, std::move(inside)));
  for (std::size_t c = 0; c < next.size(); ++c) {
    b_.set_next(c, next[c]);
    sums[c] = b_.loop().carries[c].result;
  }
  b_.end_loop();
  return sums;
}

// All of it in a row where it is short, else a loop of as many steps as there are chains, and the rest.
Expected<std::vector<Value>> DotBuilder::sum_innermost(const Tile& t, std::vector<Value> sums) {
  constexpr std::int64_t kStraight = 64;
  const std::size_t axis = p_.axes.size() - 1;
  const std::int64_t extent = p_.extent(axis), chains = form_.chains;
  std::int64_t looped = extent / chains;
  if (looped < 2 || extent * t.rows * t.vectors <= kStraight) looped = 0;
  if (looped > 0) {
    const Index k = index_of(b_.begin_loop(0, looped));
    std::vector<Value> inside;
    for (const Value v : sums) inside.push_back(b_.add_carry(v));
    for (std::int64_t c = 0; c < chains; ++c) {
      at_[axis] = k * chains + c;
      TRY(step(t, c, inside));
    }
    for (std::size_t c = 0; c < inside.size(); ++c) {
      b_.set_next(c, inside[c]);
      sums[c] = b_.loop().carries[c].result;
    }
    b_.end_loop();
  }
  for (std::int64_t k = looped * chains; k < extent; ++k) {
    at_[axis] = Index{k, {}};
    TRY(step(t, k % chains, sums));
  }
  return sums;
}

Value DotBuilder::combine_chains(std::vector<Value> chains) {
  for (std::size_t half = chains.size() / 2; half > 0; half /= 2)
    for (std::size_t c = 0; c < half; ++c) chains[c] = b_.line(Opcode::Add, type_, {chains[c], chains[c + half]});
  return chains[0];
}

Expected<> DotBuilder::tile(std::int64_t rows, std::int64_t vectors, std::int64_t valid, const Index& first_row,
                            const Index& first_lane) {
  // A single vector is masked by its loop, the last of several by a mask of its own.
  Tile t{rows, vectors, valid, first_row, first_lane, {}, kNoValue};
  t.lane = begin_lanes(vectors == 1 ? valid : form_.lanes);
  if (vectors > 1) t.mask = first_lanes(t.lane, valid);
  const std::int64_t size = rows * vectors;
  std::vector<Value> sums(static_cast<std::size_t>(size * form_.chains), b_.constant(type_, 0));
  sums = TRY(sum_axis(p_.rhs_axis + 1, t, std::move(sums)));
  for (std::int64_t s = 0; s < size; ++s) {
    std::vector<Value> chains;
    for (std::int64_t c = 0; c < form_.chains; ++c) chains.push_back(sums[static_cast<std::size_t>(c * size + s)]);
    const Value sum = combine_chains(std::move(chains));
    const std::int64_t i = s / vectors, j = s % vectors;
    if (form_.store_through) {
      b_.store_linear(scratch_, t.lane + (sums_base_ + s * form_.lanes), sum);
      continue;
    }
    at_[row_axis_] = first_row + i;
    at_[lane_axis_] = first_lane + t.lane + j * form_.lanes;
    TRY(elements_.store(p_.axes, at_, sum, j + 1 == vectors ? t.mask : kNoValue));
  }
  end_lanes();
  return form_.store_through ? finish_tile(rows, vectors, valid, first_row, first_lane) : Expected<>();
}

// The results' work on sums that lie in scratch, in one small loop.
Expected<> DotBuilder::finish_tile(std::int64_t rows, std::int64_t vectors, std::int64_t valid, const Index& first_row,
                                   const Index& first_lane) {
  const std::int64_t width = vectors * form_.lanes;
  const Index row = index_of(b_.begin_loop(0, rows));
  const Index lane = begin_lanes(width - form_.lanes + valid);
  const Value sum = b_.load_linear(scratch_, row * width + lane + sums_base_, type_);
  at_[row_axis_] = first_row + row;
  at_[lane_axis_] = first_lane + lane;
  const auto done = elements_.store(p_.axes, at_, sum);
  end_lanes();
  b_.end_loop();
  return done;
}

// --- Folds ---------------------------------------------------------------------------------------------------------

Expected<> DotBuilder::fold_cell() {
  open_cell(rows_, tile_count(p_.extent(row_axis_), form_.rows));
  open_cell(groups_, tile_count(p_.extent(lane_axis_), form_.vectors));
  for (const DotRun& columns : balanced_runs(p_.extent(lane_axis_), form_.vectors))
    for (const DotRun& rows : balanced_runs(p_.extent(row_axis_), form_.rows))
      TRY(each_tile(groups_, columns, [&](const Index& column) {
        return each_tile(rows_, rows, [&](const Index& row) { return fold(rows.size, columns.size, row, column); });
      }));
  return {};
}

Expected<> DotBuilder::fold(std::int64_t rows, std::int64_t columns, const Index& first_row, const Index& first_column) {
  const Value zero = b_.constant(type_, identity_bits(Opcode::Add, type_));
  at_.back() = index_of(b_.begin_loop(0, p_.extent(p_.axes.size() - 1), static_cast<int>(form_.lanes)));
  std::vector<Value> inside;
  for (std::int64_t s = 0; s < rows * columns; ++s) inside.push_back(b_.add_fold(Opcode::Add, zero));
  std::vector<Value> of_columns;
  for (std::int64_t j = 0; j < columns; ++j) {
    at_[lane_axis_] = first_column + j;
    of_columns.push_back(TRY(lane_operand()));
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    at_[row_axis_] = first_row + i;
    const Value of_row = TRY(row_operand());
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto s = static_cast<std::size_t>(i * columns + j);
      b_.set_fold_next(s, multiply_add(of_row, of_columns[static_cast<std::size_t>(j)], inside[s]));
    }
  }
  std::vector<Value> sums;
  for (const Fold& f : b_.loop().folds) sums.push_back(f.carry.result);
  b_.end_loop();
  for (std::int64_t s = 0; s < rows * columns; ++s) {
    at_[row_axis_] = first_row + s / columns;
    at_[lane_axis_] = first_column + s % columns;
    TRY(elements_.store(p_.axes, at_, sums[static_cast<std::size_t>(s)]));
  }
  return {};
}

}  // namespace hloom::kernels
