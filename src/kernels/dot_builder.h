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

/// Builds the loops of one dot. Scratch holds, in elements of the sum's type: packed rows, a packed panel, a tile of sums.
class DotBuilder {
 public:
  DotBuilder(Builder&, const DotFusion&, const Places&, const DotProblem&, const DotForm&);

  /// Adds all statements, and raises the kernel's scratch. Returns the size of the grid.
  Expected<std::int64_t> build();

 private:
  using Body = std::function<Expected<>()>;

  /// Tiles [from, to) that a cell has of an axis; the constants where there is one cell.
  struct Cell {
    std::int64_t cells = 1, tiles = 0, per_cell = 0;
    Index number;         ///< of the cell
    Value from = kNoValue, to = kNoValue;
  };

  Expected<> cells(std::size_t dim, const Body&);
  Expected<> cell();
  void open_cell(Cell&, std::int64_t number_of_tiles);
  /// Runs body(first element, size) for each tile of a run that the cell has.
  Expected<> each_tile(const Cell&, const DotRun&, const std::function<Expected<>(const Index&)>&);
  Index first_element(const Cell&, Value tile, std::int64_t total);

  Index begin_lanes(std::int64_t count);
  void end_lanes();
  /// Which of a vector's lanes are of elements; none where all are.
  Value first_lanes(const Index& lane, std::int64_t valid);

  Expected<> tile_cell();
  void place_scratch();
  Expected<> group(const DotRun&, std::int64_t valid, const Index& first_vector);
  Expected<> pack_rows();
  Expected<> pack_panel(std::int64_t vectors, std::int64_t valid, const Index& first_lane);
  Expected<> tile(std::int64_t rows, std::int64_t vectors, std::int64_t valid, const Index& first_row,
                  const Index& first_lane);
  Expected<> finish_tile(std::int64_t rows, std::int64_t vectors, std::int64_t valid, const Index& first_row,
                         const Index& first_lane);

  /// One k of a tile: sums of chain `chain` go on.
  struct Tile {
    std::int64_t rows, vectors, valid;
    Index first_row, first_lane, lane;
    Value mask = kNoValue;
  };
  Expected<> step(const Tile&, std::int64_t chain, std::vector<Value>& sums);
  Expected<std::vector<Value>> sum_axis(std::size_t axis, const Tile&, std::vector<Value> sums);
  Expected<std::vector<Value>> sum_innermost(const Tile&, std::vector<Value> sums);
  Value combine_chains(std::vector<Value> chains);
  Expected<Value> row_element(const Tile&, std::int64_t row);
  Expected<Value> lane_elements(const Tile&, std::int64_t vector);

  Expected<> fold_cell();
  Expected<> fold(std::int64_t rows, std::int64_t columns, const Index& first_row, const Index& first_column);

  Value multiply_add(Value a, Value b, Value sum);
  Expected<Value> row_operand(Value mask = kNoValue);
  Expected<Value> lane_operand(Value mask = kNoValue);
  Index sum_index() const;
  /// Runs body in a loop of one iteration whose variable, 0, is part of scratch addresses: so that nothing is read
  /// from scratch before what goes before has written it.
  Expected<> after_packing(const Body&);

  Builder& b_;
  const DotFusion& fusion_;
  const DotProblem& p_;
  const DotForm& form_;
  DotElements elements_;
  std::size_t row_axis_, lane_axis_;
  DType type_;
  AxisIndices at_;  ///< where we are, for each axis
  std::vector<std::int64_t> dims_;  ///< of the cells: outer axes, cells of rows, cells of lanes
  std::vector<Index> cell_at_;
  Cell rows_, groups_;
  Index written_;  ///< 0, known only after packing
  Index first_packed_row_;
  std::int64_t held_rows_ = 0, row_pitch_ = 0, panel_base_ = 0, sums_base_ = 0, scratch_elements_ = 0;
  int scratch_ = 0;
  std::int64_t blocks_ = 1;
};

}  // namespace hloom::kernels
