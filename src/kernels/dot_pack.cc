// What a dot keeps in scratch: rows and panels copied so that they lie well, and sums that wait.
#include <algorithm>

#include "base/try.h"
#include "kernels/dot_builder.h"
#include "kernels/dot_panels.h"

namespace hloom::kernels {

using hlo::Opcode;

namespace {

constexpr int kPackLanes = 32;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

// Rows of a cell, then panels, then sums.
void DotBuilder::place_scratch() {
  const std::int64_t sum = inside_, width = form_.vectors * form_.lanes, held = groups_.held * form_.lanes;
  // No multiple of a large power of two, which would put all rows into the same cache sets.
  packed_rows_dense_ = packs_rows_dense();
  row_pitch_ = ((packed_rows_dense_ ? rows_.held : sum) + 15) / 16 * 16 + 16;
  panel_base_ = packs_rows() ? (packed_rows_dense_ ? sum : rows_.held) * row_pitch_ : 0;
  sums_base_ = panel_base_ + (packs_lanes() ? sum * (form_.pack_at_once ? held : width) : 0);
  sums_pitch_ = form_.sums_wait() ? held + 16 : width;
  scratch_elements_ = sums_base_;
  if (form_.sums_wait()) scratch_elements_ += shared_held() * rows_.held * sums_pitch_;
  else if (form_.store_through) scratch_elements_ += form_.rows * sums_pitch_;
  corrections_base_ = scratch_elements_;
  if (corrects()) scratch_elements_ += width;
}

Expected<> DotBuilder::after_packing(const Body& body) {
  const Index before = written_;
  written_ = index_of(b_.begin_loop(0, 1));
  const auto done = body();
  b_.end_loop();
  written_ = before;
  return done;
}

// Rows keep what is dense: a step's rows beside each other where the operand has them so, else a row's steps.
bool DotBuilder::packs_rows_dense() const {
  const DotOperand& operand = form_.swapped ? p_.rhs : p_.lhs;
  const DotAxis &rows = p_.axes[row_axis_], &sum = p_.axes.back();
  return operand.plain && (form_.swapped ? rows.rhs : rows.lhs) == 1 && (form_.swapped ? sum.rhs : sum.lhs) != 1;
}

Index DotBuilder::packed_row(const Index& local) const {
  return packed_rows_dense_ ? sum_index() * row_pitch_ + local : local * row_pitch_ + sum_index();
}

Expected<> DotBuilder::pack_rows() {
  std::size_t loops = 1;
  if (packed_rows_dense_) loops += begin_sums();
  const Index row = begin_part(rows_.held, rows_.length, packed_rows_dense_ ? kPackLanes : 0);
  if (!packed_rows_dense_) loops += begin_sums(kPackLanes);
  at_[row_axis_] = rows_.first + row;
  const Value v = TRY(packed_row_operand());
  b_.store_linear(scratch_, packed_row(row), v);
  while (loops-- > 0) b_.end_loop();
  return {};
}

Index DotBuilder::panel_of(const Group& g) const {
  if (!form_.pack_at_once) return Index{panel_base_, {}};
  return (g.first + groups_.first * -1) * (inside_ * form_.lanes) + panel_base_;
}

Value DotBuilder::packed_lanes(const Group& g, const Index& lane, std::int64_t vector) {
  if (form_.lanes_ready) return ready_element(lane_axis_, g.first + vector, ceil_div(p_.extent(lane_axis_), form_.lanes), form_.lanes, lane);
  const Index at = panel_of(g) + sum_index() * (g.vectors * form_.lanes) + lane;
  return b_.load_linear(scratch_, at + vector * form_.lanes + written_, type_);
}

// As PanelOrder says.
Value DotBuilder::ready_element(std::size_t axis, const Index& panel, std::int64_t panels, std::int64_t lanes, const Index& lane) {
  const bool of_lhs = axis == p_.lhs_axis;
  Index outer, step;
  for (std::size_t a = 0; a < p_.lhs_axis; ++a)
    if (p_.extent(a) > 1 && (of_lhs ? p_.axes[a].lhs : p_.axes[a].rhs) != 0) outer = outer * p_.extent(a) + at_[a];
  for (std::size_t a = p_.rhs_axis + 1; a < p_.axes.size(); ++a) step = step * p_.extent(a) + at_[a];
  const std::int64_t pitch = panel_pitch(p_.sum_extent(), lanes > 1 || axis == lane_axis_);
  return elements_.of_panels(of_lhs ? 0 : 1, ((outer * panels + panel) * pitch + step) * lanes + lane);
}

// A panel has for each step the group's vectors beside each other; the lanes that no element fills are zero. Lanes stay
// outside of the loop over steps: where lanes lie apart, their own steps are what lies together. (Reading lane by lane
// and scattering was slower everywhere.)
Expected<> DotBuilder::pack_panel(const Group& g) {
  const Index lane = begin_lanes(form_.lanes);
  std::size_t loops = begin_sums();
  TRY(pack_vectors(g, lane));
  while (loops-- > 0) b_.end_loop();
  end_lanes();
  return {};
}

Expected<> DotBuilder::pack_vectors(const Group& g, const Index& lane) {
  const Value mask = first_lanes(lane, g.valid);
  for (std::int64_t j = 0; j < g.vectors; ++j) {
    at_[lane_axis_] = g.first * form_.lanes + lane + j * form_.lanes;
    const Value v = TRY(packed_lane_operand(j + 1 == g.vectors ? mask : kNoValue));
    const Index to = panel_of(g) + sum_index() * (g.vectors * form_.lanes) + lane + j * form_.lanes;
    b_.store_linear(scratch_, to, v);
  }
  return {};
}

// All panels of the cell step by step, for memory is fast along what lies together.
Expected<> DotBuilder::pack_all_panels() {
  std::size_t loops = begin_sums();
  const auto done = each_group([&](const Group& g) { return pack_step(g); });
  while (loops-- > 0) b_.end_loop();
  return done;
}

Expected<> DotBuilder::pack_step(const Group& g) {
  const Index lane = begin_lanes(form_.lanes);
  TRY(pack_vectors(g, lane));
  end_lanes();
  return {};
}

// --- Bytes ---------------------------------------------------------------------------------------------------------

// The bytes of four steps, first lowest; zeros behind the last.
Expected<Value> DotBuilder::four_bytes(const Operand& operand, Value mask) {
  const Index step = at_.back();
  const bool whole = fusion_.byte_steps % 4 == 0;
  Value word = kNoValue;
  for (std::int64_t byte = 0; byte < 4; ++byte) {
    at_.back() = step * 4 + byte;
    Value inside = kNoValue, own = mask;
    if (!whole) {
      Line less;
      less.opcode = Opcode::Compare;
      less.operands = {b_.affine(at_.back()), b_.constant_index(fusion_.byte_steps)};
      less.compare = {hlo::Direction::Lt, hlo::Comparison::Signed};
      inside = b_.line(std::move(less), DType::Pred);
      own = mask == kNoValue ? inside : b_.line(Opcode::And, DType::Pred, {mask, inside});
    }
    Value v = TRY(operand(own));
    if (inside != kNoValue) v = b_.line(Opcode::Select, DType::S32, {inside, v, b_.constant(DType::S32, 0)});
    v = b_.line(Opcode::And, DType::S32, {v, b_.constant(DType::S32, 255)});
    if (byte > 0) v = b_.line(Opcode::ShiftLeft, DType::S32, {v, b_.constant(DType::S32, static_cast<std::uint64_t>(8 * byte))});
    word = word == kNoValue ? v : b_.line(Opcode::Or, DType::S32, {word, v});
  }
  at_.back() = step;
  return word;
}

namespace {
constexpr std::uint64_t kFour128 = 0x80808080;
}  // namespace

Expected<Value> DotBuilder::packed_row_operand() {
  if (fusion_.byte_steps == 0) return row_operand();
  const bool words = form_.swapped ? p_.rhs.words : p_.lhs.words;
  const Value word = TRY(words ? elements_.word(form_.swapped ? 1 : 0, p_.axes, at_) : four_bytes([&](Value mask) { return row_operand(mask); }, kNoValue));
  return corrects() ? b_.line(Opcode::Xor, DType::S32, {word, b_.constant(DType::S32, kFour128)}) : word;
}

Expected<Value> DotBuilder::packed_lane_operand(Value mask) {
  if (fusion_.byte_steps == 0) return lane_operand(mask);
  return four_bytes([&](Value own) { return lane_operand(own); }, mask);
}

// Σ (a + 128)·b is 128·Σ b too much, and Σ (a - 128)·b so much too little: for each lane of the group, of the steps that are
// packed.
Expected<> DotBuilder::correct(const Group& g) {
  const Index lane = begin_lanes(form_.lanes);
  const Value by = b_.constant(type_, kFour128);
  std::vector<Value> sums(static_cast<std::size_t>(g.vectors), b_.constant(type_, 0));
  sums = TRY(correct_axis(first_sum_, g, lane, by, std::move(sums)));
  for (std::int64_t j = 0; j < g.vectors; ++j)
    b_.store_linear(scratch_, lane + j * form_.lanes + corrections_base_, b_.line(Opcode::Negate, type_, {sums[static_cast<std::size_t>(j)]}));
  end_lanes();
  return {};
}

Expected<std::vector<Value>> DotBuilder::correct_axis(std::size_t axis, const Group& g, const Index& lane, Value by, std::vector<Value> sums) {
  const bool innermost = axis + 1 == p_.axes.size();
  const Index at = innermost ? begin_part(block_, block_length_) : index_of(b_.begin_loop(0, p_.extent(axis)));
  std::vector<Value> inside;
  for (const Value sum : sums) inside.push_back(b_.add_carry(sum));
  if (innermost) {
    set_sum(at);
    for (std::int64_t j = 0; j < g.vectors; ++j) {
      Value& sum = inside[static_cast<std::size_t>(j)];
      sum = multiply_add(by, packed_lanes(g, lane, j), sum);
    }
  } else {
    at_[axis] = at;
    inside = TRY(correct_axis(axis + 1, g, lane, by, std::move(inside)));
  }
  for (std::size_t j = 0; j < sums.size(); ++j) {
    b_.set_next(j, inside[j]);
    sums[j] = b_.loop().carries[j].result;
  }
  b_.end_loop();
  return sums;
}

// --- Sums ----------------------------------------------------------------------------------------------------------

// Of a cell where sums go on block by block, else of the tile alone.
Index DotBuilder::sum_place(const Tile& t, std::int64_t row, std::int64_t vector) const {
  if (!form_.sums_wait())
    return t.lane + (sums_base_ + (row * t.group.vectors + vector) * form_.lanes);
  const Index local = (shared_ * rows_.held + t.first_row + rows_.first * -1 + row) * sums_pitch_ +
                      (t.group.first + groups_.first * -1 + vector) * form_.lanes;
  return local + t.lane + sums_base_;
}

Expected<> DotBuilder::clear_sums() {
  // Of rows and shared indices all that a cell may have: what it has not is nobody's.
  const std::int64_t rows = shared_held() * rows_.held;
  const Index row = shared_held() == 1 ? begin_part(rows_.held, rows_.length) : begin_part(rows, Index{rows, {}});
  const Index lane = begin_part(groups_.held * form_.lanes, groups_.length * form_.lanes, form_.lanes);
  b_.store_linear(scratch_, row * sums_pitch_ + lane + sums_base_, b_.constant(kept_type_, 0));
  b_.end_loop();
  b_.end_loop();
  return {};
}

// The results of a cell's sums.
Expected<> DotBuilder::finish_cell() {
  return each_shared([this] { return finish_rows(); });
}

Expected<> DotBuilder::finish_rows() {
  const Index row = begin_part(rows_.held, rows_.length);
  Index length{p_.extent(lane_axis_), {}};
  if (groups_.cells > 1) {
    const Value rest = b_.affine(groups_.first * -form_.lanes + p_.extent(lane_axis_));
    const Value whole = b_.affine(groups_.length * form_.lanes);
    length = index_of(b_.line(Opcode::Minimum, DType::S64, {rest, whole}));
    b_.set_range(length.terms[0].value, {0, groups_.held * form_.lanes});
  }
  const Index lane = begin_part(groups_.held * form_.lanes, length, form_.lanes);
  const Value sum = b_.load_linear(scratch_, (shared_ * rows_.held + row) * sums_pitch_ + lane + sums_base_, kept_type_);
  at_[row_axis_] = rows_.first + row;
  at_[lane_axis_] = groups_.first * form_.lanes + lane;
  TRY(elements_.store(p_.axes, at_, sum));
  b_.end_loop();
  b_.end_loop();
  return {};
}

// The results of one tile, whose sums lie in scratch, in one small loop: their work is long.
Expected<> DotBuilder::finish_tile(const Tile& t) {
  const std::int64_t width = t.group.vectors * form_.lanes;
  const Index row = index_of(b_.begin_loop(0, t.rows));
  const Index lane = begin_lanes(width - form_.lanes + t.group.valid);
  const Value sum = b_.load_linear(scratch_, row * width + lane + sums_base_, type_);
  at_[row_axis_] = t.first_row + row;
  at_[lane_axis_] = t.group.first * form_.lanes + lane;
  TRY(elements_.store(p_.axes, at_, sum));
  end_lanes();
  b_.end_loop();
  return {};
}

}  // namespace hloom::kernels
