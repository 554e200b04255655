// The grid's cells are rectangles of tiles. Loops over equal tiles are loops; the one or two other sizes have code of
// their own.
#include "kernels/dot_builder.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "hlo/identity.h"

namespace hloom::kernels {

using hlo::Opcode;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

DotBuilder::DotBuilder(Builder& builder, const DotFusion& fusion, const Places& places, const DotProblem& problem,
                       const DotForm& form)
    : b_(builder),
      fusion_(fusion),
      p_(problem),
      form_(form),
      elements_(builder, fusion, places),
      row_axis_(form.swapped ? problem.rhs_axis : problem.lhs_axis),
      lane_axis_(form.channel_axis >= 0 ? static_cast<std::size_t>(form.channel_axis) : form.swapped ? problem.lhs_axis : problem.rhs_axis),
      type_(fusion.sum_type),
      kept_type_(fusion.exact_steps > 0 ? DType::S32 : fusion.sum_type),
      at_(problem.axes.size()) {
  scratch_ = static_cast<int>(b_.kernel().arguments.size());
}

Expected<std::int64_t> DotBuilder::build() {
  for (std::size_t a = 0; a <= p_.rhs_axis; ++a)
    if (p_.extent(a) == 0) return blocks_;
  std::int64_t shared_cells = form_.shared_cells;
  for (std::size_t a = 0; a < p_.lhs_axis; ++a)
    dims_.push_back(a == lane_axis_ ? 1 : shares(a) ? std::exchange(shared_cells, 1) : p_.extent(a));
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
  for (std::size_t a = 0; a < p_.lhs_axis; ++a)
    if (!shares(a) && a != lane_axis_) at_[a] = cell_at_[a];
  rows_ = {};
  rows_.cells = form_.row_cells;
  rows_.number = cell_at_[p_.lhs_axis];
  groups_ = {};
  groups_.cells = form_.lane_cells;
  groups_.number = cell_at_[p_.lhs_axis + 1];
  const bool fold = form_.kind == DotForm::Kind::Fold;
  const std::int64_t lanes = p_.extent(lane_axis_);
  open_cell(rows_, p_.extent(row_axis_), form_.rows);
  open_cell(groups_, fold ? lanes : ceil_div(lanes, form_.lanes), form_.vectors);
  return fold ? fold_cell() : tile_cell();
}

void DotBuilder::open_cell(Cell& cell, std::int64_t total, std::int64_t largest) {
  cell.tiles = ceil_div(total, largest);
  cell.per_cell = ceil_div(cell.tiles, cell.cells);
  cell.held = std::min(total, ceil_div(total, cell.tiles) * cell.per_cell);
  cell.length.offset = total;
  if (cell.cells == 1) return;
  cell.from = b_.affine(cell.number * cell.per_cell);
  cell.to = b_.line(Opcode::Minimum, DType::S64,
                    {b_.affine(cell.number * cell.per_cell + cell.per_cell), b_.constant_index(cell.tiles)});
  b_.set_range(cell.to, {0, cell.tiles});
  cell.first = first_element(cell, cell.from, total);
  cell.length = first_element(cell, cell.to, total) + cell.first * -1;
}

// Of a tile: size·number, and one more for each of the longer tiles before it.
Index DotBuilder::first_element(const Cell& cell, Value tile, std::int64_t total) {
  const std::int64_t size = total / cell.tiles, longer = total % cell.tiles;
  Index first = index_of(tile) * size;
  if (longer > 0) {
    const Value before = b_.line(Opcode::Minimum, DType::S64, {tile, b_.constant_index(longer)});
    b_.set_range(before, {0, longer});
    first = first + index_of(before);
  }
  return first;
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

Expected<> DotBuilder::each_group(const std::function<Expected<>(const Group&)>& body) {
  const std::int64_t lanes = p_.extent(lane_axis_), vectors = ceil_div(lanes, form_.lanes);
  const std::int64_t rest = lanes - (vectors - 1) * form_.lanes;  // lanes of the last vector
  for (const DotRun& run : balanced_runs(vectors, form_.vectors)) {
    // The last group of all is apart if its last vector is not full.
    const bool masked = run.first + run.size * run.count == vectors && rest != form_.lanes;
    DotRun full = run;
    if (masked) --full.count;
    TRY(each_tile(groups_, full, [&](const Index& first) { return body({run.size, form_.lanes, first}); }));
    if (!masked) continue;
    const DotRun last{run.size, 1, run.first + run.size * full.count, run.tile + full.count};
    TRY(each_tile(groups_, last, [&](const Index& first) { return body({run.size, rest, first}); }));
  }
  return {};
}

Index DotBuilder::begin_part(std::int64_t count, const Index& length, std::int64_t lanes) {
  const bool constant = length.terms.empty();
  const Value to = constant ? kNoValue : b_.affine(length);
  const Value from = constant ? kNoValue : b_.constant_index(0);
  const Value variable = b_.begin_loop(0, constant ? length.offset : count, lanes > 1 ? static_cast<int>(lanes) : 0);
  b_.loop().from_value = from;
  b_.loop().to_value = to;
  return index_of(variable);
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

Value DotBuilder::multiply_add(Value of_row, Value of_lanes, Value sum) {
  if (fusion_.byte_steps > 0 && both_unsigned()) return b_.multiply_add(of_lanes, of_row, sum);
  if (type_ == DType::F32 || type_ == DType::F64 || fusion_.byte_steps > 0) return b_.multiply_add(of_row, of_lanes, sum);
  return b_.line(Opcode::Add, type_, {sum, b_.line(Opcode::Multiply, type_, {of_row, of_lanes})});
}

// --- Folds ---------------------------------------------------------------------------------------------------------

Expected<> DotBuilder::fold_cell() {
  place_stage();
  return after_staging([this] { return fold_tiles(); });
}

Expected<> DotBuilder::fold_tiles() {
  for (const DotRun& columns : balanced_runs(p_.extent(lane_axis_), form_.vectors))
    for (const DotRun& rows : balanced_runs(p_.extent(row_axis_), form_.rows))
      TRY(each_tile(groups_, columns, [&](const Index& column) {
        return each_tile(rows_, rows, [&](const Index& row) { return fold(rows.size, columns.size, row, column); });
      }));
  return {};
}

Expected<> DotBuilder::fold(std::int64_t rows, std::int64_t columns, const Index& first_row, const Index& first_column) {
  const Value zero = b_.constant(type_, hlo::identity_bits(Opcode::Add, type_));
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
