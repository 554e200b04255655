// A cell takes one group of vectors after the other, and all row tiles run over a group while its part of the operand is
// near. Where the sums are long and the operand is large, that is done for some steps of the sums at a time: partial
// sums wait in scratch, and continue to the bit as if they had never stopped.
#include <algorithm>

#include "base/try.h"
#include "kernels/dot_builder.h"

namespace hloom::kernels {

using hlo::Opcode;

Expected<> DotBuilder::tile_cell() {
  const std::int64_t extent = p_.axes.back().extent;
  block_ = form_.sum_block > 0 ? form_.sum_block : extent;
  first_sum_ = p_.rhs_axis + 1 + static_cast<std::size_t>(form_.sum_outer);
  inside_ = block_;
  for (std::size_t a = first_sum_; a + 1 < p_.axes.size(); ++a) inside_ *= p_.extent(a);
  place_scratch();
  place_stage();
  block_from_ = {};
  block_length_ = Index{block_, {}};
  return after_staging([this] { return tile_sums(); });
}

Expected<> DotBuilder::tile_sums() {
  if (!form_.sums_wait()) return sum_block();
  TRY(clear_sums());
  TRY(outer_sums(p_.rhs_axis + 1));
  return finish_cell();
}

Expected<> DotBuilder::outer_sums(std::size_t axis) {
  if (axis == first_sum_) return form_.sum_block > 0 ? sum_blocks() : sum_block();
  at_[axis] = index_of(b_.begin_loop(0, p_.extent(axis)));
  const auto done = outer_sums(axis + 1);
  b_.end_loop();
  return done;
}

Expected<> DotBuilder::sum_blocks() {
  const std::int64_t extent = p_.axes.back().extent;
  block_from_ = index_of(b_.begin_loop(0, (extent + block_ - 1) / block_)) * block_;
  if (extent % block_ != 0) {
    const Value length = b_.line(Opcode::Minimum, DType::S64,
                                 {b_.affine(block_from_ * -1 + extent), b_.constant_index(block_)});
    b_.set_range(length, {1, block_});
    block_length_ = index_of(length);
  }
  const auto done = sum_block();
  b_.end_loop();
  return done;
}

Expected<> DotBuilder::sum_block() {
  const bool at_once = packs_lanes() && form_.pack_at_once;
  const auto groups = [&] {
    return each_group([&](const Group& g) -> Expected<> {
      if (!packs_lanes() || at_once) return group(g);
      TRY(pack_panel(g));
      return after_packing([&] { return group(g); });
    });
  };
  if (packs_rows()) TRY(pack_rows());
  if (at_once) TRY(pack_all_panels());
  return packs_rows() || at_once || form_.sums_wait() ? after_packing(groups) : groups();
}

Expected<> DotBuilder::group(const Group& g) {
  const auto all = [&] { return each_shared([&] { return tiles(g); }); };
  if (!corrects()) return all();
  TRY(correct(g));
  return after_packing(all);
}

Expected<> DotBuilder::each_shared(const Body& body, std::size_t axis) {
  while (axis < p_.lhs_axis && !shares(axis)) ++axis;
  if (axis == p_.lhs_axis) return body();
  const Index own = begin_part(held(axis), shared_length(axis)), before = shared_;
  at_[axis] = dims_[axis] > 1 ? cell_at_[axis] * held(axis) + own : own;
  shared_ = shared_ * held(axis) + own;
  const auto done = each_shared(body, axis + 1);
  shared_ = before;
  b_.end_loop();
  return done;
}

Index DotBuilder::shared_length(std::size_t axis) {
  const std::int64_t extent = p_.extent(axis), most = held(axis);
  if (dims_[axis] == 1) return Index{extent, {}};
  const Value rest = b_.affine(cell_at_[axis] * -most + extent);
  const Value count = b_.line(Opcode::Minimum, DType::S64, {rest, b_.constant_index(most)});
  b_.set_range(count, {0, most});
  return index_of(count);
}

std::int64_t DotBuilder::shared_held() const {
  std::int64_t count = 1;
  for (std::size_t a = 0; a < p_.lhs_axis; ++a)
    if (shares(a)) count *= held(a);
  return count;
}

Expected<> DotBuilder::tiles(const Group& g) {
  for (const DotRun& r : balanced_runs(p_.extent(row_axis_), form_.rows))
    TRY(each_tile(rows_, r, [&](const Index& row) { return tile(r.size, g, row); }));
  return {};
}

Expected<> DotBuilder::tile(std::int64_t rows, const Group& g, const Index& first_row) {
  Tile t{rows, g, first_row, {}, kNoValue};
  // A single vector is masked by its loop, the last of several by a mask of its own. Partial sums are kept whole.
  const bool own_mask = g.vectors > 1 || form_.sums_wait() || form_.store_through;
  t.lane = begin_lanes(own_mask ? form_.lanes : g.valid);
  if (own_mask) t.mask = first_lanes(t.lane, g.valid);
  std::vector<Value> sums(static_cast<std::size_t>(rows * g.vectors * form_.chains), b_.constant(type_, 0));
  if (form_.sums_wait() && fusion_.exact_steps == 0)
    for (std::int64_t s = 0; s < rows * g.vectors; ++s)
      sums[static_cast<std::size_t>(s)] =
          b_.load_linear(scratch_, sum_place(t, s / g.vectors, s % g.vectors) + written_, type_);
  if (corrects())
    for (std::int64_t s = 0; s < rows * g.vectors; ++s) {
      const Index at = t.lane + s % g.vectors * form_.lanes + corrections_base_;
      Value& sum = sums[static_cast<std::size_t>(s)];
      sum = b_.line(Opcode::Add, type_, {sum, b_.load_linear(scratch_, at + written_, type_)});
    }
  sums = TRY(sum_axis(first_sum_, t, std::move(sums)));
  TRY(finish(t, std::move(sums)));
  end_lanes();
  return form_.store_through && !form_.sums_wait() ? finish_tile(t) : Expected<>();
}

Expected<> DotBuilder::finish(const Tile& t, std::vector<Value> sums) {
  const std::int64_t size = t.rows * t.group.vectors;
  for (std::int64_t s = 0; s < size; ++s) {
    std::vector<Value> chains;
    for (std::int64_t c = 0; c < form_.chains; ++c) chains.push_back(sums[static_cast<std::size_t>(c * size + s)]);
    const Value sum = combine_chains(std::move(chains));
    const std::int64_t i = s / t.group.vectors, j = s % t.group.vectors;
    if (form_.store_through || form_.sums_wait()) {
      keep_sum(sum_place(t, i, j), sum);
      continue;
    }
    at_[row_axis_] = t.first_row + i;
    at_[lane_axis_] = t.group.first * form_.lanes + t.lane + j * form_.lanes;
    TRY(elements_.store(p_.axes, at_, sum, j + 1 == t.group.vectors ? t.mask : kNoValue));
  }
  return {};
}

// Sums of a block go on where they stopped, or are added to those of the blocks before.
void DotBuilder::keep_sum(const Index& place, Value sum) {
  if (fusion_.exact_steps > 0 && form_.sum_block > 0)
    sum = b_.line(Opcode::Add, kept_type_,
                  {b_.load_linear(scratch_, place + written_, kept_type_), b_.line(Opcode::Convert, kept_type_, {sum})});
  b_.store_linear(scratch_, place, sum);
}

Value DotBuilder::combine_chains(std::vector<Value> chains) {
  for (std::size_t half = chains.size() / 2; half > 0; half /= 2)
    for (std::size_t c = 0; c < half; ++c) chains[c] = b_.line(Opcode::Add, type_, {chains[c], chains[c + half]});
  return chains[0];
}

// --- Sums ----------------------------------------------------------------------------------------------------------

void DotBuilder::set_sum(const Index& local) {
  local_sum_ = local;
  at_.back() = block_from_ + local;
}

Index DotBuilder::sum_index() const {
  Index index;
  for (std::size_t a = first_sum_; a + 1 < p_.axes.size(); ++a) index = index * p_.extent(a) + at_[a];
  return index * block_ + local_sum_;
}

std::size_t DotBuilder::begin_sums(int lanes) {
  std::size_t loops = 1;
  for (std::size_t a = first_sum_; a + 1 < p_.axes.size(); ++a, ++loops)
    at_[a] = index_of(b_.begin_loop(0, p_.extent(a)));
  set_sum(begin_part(block_, block_length_, lanes));
  return loops;
}

Expected<Value> DotBuilder::row_element(const Tile& t, std::int64_t row) {
  if (form_.rows_ready) return ready_element(row_axis_, t.first_row + row, p_.extent(row_axis_), 1, {});
  if (form_.pack_rows) {
    const Index local = t.first_row + row + rows_.first * -1;
    return b_.load_linear(scratch_, packed_row(local) + written_, type_);
  }
  at_[row_axis_] = t.first_row + row;
  return packed_row_operand();
}

Expected<Value> DotBuilder::lane_elements(const Tile& t, std::int64_t vector) {
  if (form_.pack_lanes) return packed_lanes(t.group, t.lane, vector);
  at_[lane_axis_] = t.group.first * form_.lanes + t.lane + vector * form_.lanes;
  return lane_operand(vector + 1 == t.group.vectors ? t.mask : kNoValue);
}

// Rows too have an element for each lane.
Expected<> DotBuilder::channel_step(const Tile& t, std::int64_t chain, std::vector<Value>& sums) {
  for (std::int64_t j = 0; j < t.group.vectors; ++j) {
    const Value of_lanes = TRY(lane_elements(t, j));
    for (std::int64_t i = 0; i < t.rows; ++i) {
      at_[row_axis_] = t.first_row + i;
      const Value of_row = TRY(row_operand(j + 1 == t.group.vectors ? t.mask : kNoValue));
      Value& sum = sums[static_cast<std::size_t>((chain * t.rows + i) * t.group.vectors + j)];
      sum = multiply_add(of_row, of_lanes, sum);
    }
  }
  return {};
}

Expected<> DotBuilder::step(const Tile& t, std::int64_t chain, std::vector<Value>& sums) {
  if (form_.channel_axis >= 0) return channel_step(t, chain, sums);
  std::vector<Value> vectors;
  for (std::int64_t j = 0; j < t.group.vectors; ++j) vectors.push_back(TRY(lane_elements(t, j)));
  auto sum = sums.begin() + chain * t.rows * t.group.vectors;
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
  const std::int64_t chains = form_.chains;
  const bool constant = block_length_.terms.empty();
  std::int64_t looped = block_ / chains;
  if (constant && (looped < 2 || block_ * t.rows * t.group.vectors <= kStraight)) looped = 0;
  if (looped > 0) {
    const Index k = begin_part(looped, constant ? Index{looped, {}} : block_length_);
    std::vector<Value> inside;
    for (const Value v : sums) inside.push_back(b_.add_carry(v));
    for (std::int64_t c = 0; c < chains; ++c) {
      set_sum(k * chains + c);
      TRY(step(t, c, inside));
    }
    for (std::size_t c = 0; c < inside.size(); ++c) {
      b_.set_next(c, inside[c]);
      sums[c] = b_.loop().carries[c].result;
    }
    b_.end_loop();
  }
  for (std::int64_t k = looped * chains; constant && k < block_; ++k) {
    set_sum(Index{k, {}});
    TRY(step(t, k % chains, sums));
  }
  return sums;
}

}  // namespace hloom::kernels
