// From the form chosen for a dot to the statements of a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hloom/error.h"
#include "kernels/builder.h"
#include "kernels/dot_form.h"
#include "kernels/dot_problem.h"

namespace hloom::kernels {

/// Builds the loops of one dot. Scratch holds, in elements of the sum's type: packed rows, packed panels, sums.
class DotBuilder {
 public:
  DotBuilder(Builder&, const DotFusion&, const Places&, const DotProblem&, const DotForm&);

  /// Adds all statements, and raises the kernel's scratch. Returns the size of the grid.
  Expected<std::int64_t> build();

 private:
  using Body = std::function<Expected<>()>;

  /// Tiles [from, to) that a cell has of an axis; all of them where there is one cell.
  struct Cell {
    std::int64_t cells = 1, tiles = 0, per_cell = 0;
    Index number;  ///< of the cell
    Value from = kNoValue, to = kNoValue;
    Index first;         ///< element (vector) of the first tile
    Index length;        ///< and how many from there on
    std::int64_t held = 0;  ///< never more than these
  };

  /// Vectors side by side: how many, and how many lanes of the last are elements.
  struct Group {
    std::int64_t vectors = 0, valid = 0;
    Index first;  ///< vector
  };

  /// A tile of the result.
  struct Tile {
    std::int64_t rows = 0;
    Group group;
    Index first_row, lane;
    Value mask = kNoValue;  ///< of the last vector
  };

  // dot_builder.cc: cells, and what they have of both axes.
  Expected<> cells(std::size_t dim, const Body&);
  Expected<> cell();
  void open_cell(Cell&, std::int64_t total, std::int64_t largest);
  Index first_element(const Cell&, Value tile, std::int64_t total);
  /// Runs body(first element) for each tile of a run that the cell has.
  Expected<> each_tile(const Cell&, const DotRun&, const std::function<Expected<>(const Index&)>&);
  Expected<> each_group(const std::function<Expected<>(const Group&)>&);
  /// A loop over [0, count), `length` of which there are.
  Index begin_part(std::int64_t count, const Index& length, std::int64_t lanes = 0);
  Index begin_lanes(std::int64_t count);
  void end_lanes();
  /// Which of a vector's lanes are elements; none where all are.
  Value first_lanes(const Index& lane, std::int64_t valid);
  Value multiply_add(Value of_row, Value of_lanes, Value sum);
  Expected<Value> row_operand(Value mask = kNoValue) {
    elements_.stage_at(stage_);
    return form_.swapped ? elements_.rhs(p_.axes, at_, mask) : elements_.lhs(p_.axes, at_, mask);
  }
  Expected<Value> lane_operand(Value mask = kNoValue) {
    elements_.stage_at(stage_);
    return form_.swapped ? elements_.lhs(p_.axes, at_, mask) : elements_.rhs(p_.axes, at_, mask);
  }
  Expected<> fold_cell();
  Expected<> fold_tiles();
  Expected<> fold(std::int64_t rows, std::int64_t columns, const Index& first_row, const Index& first_column);

  // dot_pack.cc: scratch.
  void place_scratch();
  bool packs_rows_dense() const;
  Expected<> pack_rows();
  /// Where an element of a packed row lies, for the present step.
  Index packed_row(const Index& local) const;
  Expected<> pack_panel(const Group&);
  Expected<> pack_all_panels();
  Expected<> pack_step(const Group&);
  Expected<> pack_vectors(const Group&, const Index& lane);
  bool packs_rows() const { return form_.pack_rows && !form_.rows_ready; }
  bool packs_lanes() const { return form_.pack_lanes && !form_.lanes_ready; }
  /// A vector of a group's panel, for the present step.
  Value packed_lanes(const Group&, const Index& lane, std::int64_t vector);
  /// Of an operand that lies in panels, for the present step and outer indices.
  Value ready_element(std::size_t axis, const Index& panel, std::int64_t panels, std::int64_t lanes, const Index& lane);
  /// What a packed element is: an element, or the bytes of four steps.
  Expected<Value> packed_row_operand();
  Expected<Value> packed_lane_operand(Value mask);
  using Operand = std::function<Expected<Value>(Value mask)>;
  Expected<Value> four_bytes(const Operand&, Value mask);
  /// Whether rows are 128 more or less than they are, and what that adds to sums is taken off again.
  bool both_unsigned() const { return fusion_.lhs_unsigned && fusion_.rhs_unsigned; }
  bool corrects() const {
    return fusion_.byte_steps > 0 && (both_unsigned() || !(form_.swapped ? fusion_.rhs_unsigned : fusion_.lhs_unsigned));
  }
  Expected<> correct(const Group&);
  Expected<std::vector<Value>> correct_axis(std::size_t axis, const Group&, const Index& lane, Value by, std::vector<Value> sums);
  /// Where a group's panel begins.
  Index panel_of(const Group&) const;
  Index sum_place(const Tile&, std::int64_t row, std::int64_t vector) const;
  Expected<> clear_sums();
  Expected<> finish_cell();
  Expected<> finish_rows();
  Expected<> finish_tile(const Tile&);
  /// Runs body in a loop of one iteration whose variable, 0, is part of scratch addresses: so that nothing is read
  /// from scratch before what goes before has written it.
  Expected<> after_packing(const Body&);

  // dot_stage.cc: lines of a padded operand.
  void place_stage();
  /// Runs body where the cell's lines lie in scratch, if the operand is staged.
  Expected<> after_staging(const Body&);
  Expected<> fill_stage(const Index& first_line);
  Expected<> fill_line(Point&, std::size_t dim, const Index& at);
  std::int64_t staged_lines() const;
  /// The first index of an outer axis that the cell has.
  Index first_of(std::size_t axis) const { return shares(axis) ? cell_at_[axis] * held(axis) : cell_at_[axis]; }

  // dot_tile.cc: sums of a tile.
  Expected<> tile_cell();
  Expected<> tile_sums();
  Expected<> outer_sums(std::size_t axis);
  Expected<> sum_blocks();
  bool shares(std::size_t axis) const {
    return form_.share_panels && p_.axes[axis].of == p_.axes[row_axis_].of && (p_.stage.line == 0 || axis == p_.stage.axis);
  }
  /// Runs body at all indices of the cell that share panels.
  Expected<> each_shared(const Body&, std::size_t axis = 0);
  /// Of an axis that shares panels: how many indices a cell has at most, and which it has.
  std::int64_t held(std::size_t axis) const { return (p_.extent(axis) + dims_[axis] - 1) / dims_[axis]; }
  Index shared_length(std::size_t axis);
  std::int64_t shared_held() const;
  Expected<> sum_block();
  Expected<> group(const Group&);
  Expected<> tiles(const Group&);
  Expected<> tile(std::int64_t rows, const Group&, const Index& first_row);
  Expected<> finish(const Tile&, std::vector<Value> sums);
  /// One k of a tile: sums of chain `chain` go on.
  Expected<> step(const Tile&, std::int64_t chain, std::vector<Value>& sums);
  Expected<> channel_step(const Tile&, std::int64_t chain, std::vector<Value>& sums);
  Expected<std::vector<Value>> sum_axis(std::size_t axis, const Tile&, std::vector<Value> sums);
  Expected<std::vector<Value>> sum_innermost(const Tile&, std::vector<Value> sums);
  void keep_sum(const Index& place, Value sum);
  Value combine_chains(std::vector<Value> chains);
  Expected<Value> row_element(const Tile&, std::int64_t row);
  Expected<Value> lane_elements(const Tile&, std::int64_t vector);
  /// Opens loops over the summed axes, the innermost by lanes if asked, and returns how many.
  std::size_t begin_sums(int lanes = 0);
  void set_sum(const Index& local);
  /// Position in what is packed of the summed axes.
  Index sum_index() const;

  Builder& b_;
  const DotFusion& fusion_;
  const DotProblem& p_;
  const DotForm& form_;
  DotElements elements_;
  std::size_t row_axis_, lane_axis_;
  DType type_;
  DType kept_type_;                 ///< of the sums that wait in scratch
  AxisIndices at_;                  ///< where we are, for each axis
  std::vector<std::int64_t> dims_;  ///< of the cells: outer axes, cells of rows, cells of lanes
  std::vector<Index> cell_at_;
  Cell rows_, groups_;
  std::int64_t block_ = 0;          ///< steps of the innermost summed axis that are summed at a time
  Index block_from_, block_length_, local_sum_;
  std::size_t first_sum_ = 0;       ///< the outermost summed axis inside of blocks
  std::int64_t inside_ = 0;         ///< steps of a block
  Index shared_;                    ///< where we are along the axes that share panels, of the cell's
  Index written_;                   ///< 0, known only after packing
  Index stage_;                     ///< element of scratch at which a staged operand would begin
  std::int64_t stage_base_ = 0;
  bool packed_rows_dense_ = false;
  std::int64_t row_pitch_ = 0, panel_base_ = 0, sums_base_ = 0, sums_pitch_ = 0, corrections_base_ = 0, scratch_elements_ = 0;
  int scratch_ = 0;
  std::int64_t blocks_ = 1;
};

}  // namespace hloom::kernels
