// How a dot is cut into tiles: from shapes and strides alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hloom/shape.h"
#include "kernels/dot_problem.h"
#include "kernels/plan_dot.h"

namespace hloom::kernels {

/// `count` tiles of `size` each, from element `first` on; their numbers begin at `tile`.
struct DotRun {
  std::int64_t size = 0, count = 0, first = 0, tile = 0;
};

/// `total` cut into as few tiles as a largest size allows, all sizes within one of each other: at most two runs.
std::vector<DotRun> balanced_runs(std::int64_t total, std::int64_t largest);

/// The choices of a plan. One operand goes by rows, the other by lanes: rows·vectors accumulators sum a tile.
struct DotForm {
  enum class Kind : std::uint8_t {
    Tile,  ///< lanes along a free axis: for each k a row's element times vectors of the other operand
    Fold,  ///< lanes along the summed axis, which both operands have dense: partial sums by lanes
  };
  Kind kind = Kind::Tile;
  std::int64_t channel_axis = -1;  ///< not -1: lanes are of this axis, a batch's, and both operands have an element for each
  bool swapped = false;      ///< rows are of rhs, lanes of lhs
  std::int64_t lanes = 16;   ///< of one vector
  std::int64_t rows = 1;     ///< of the largest tile
  std::int64_t vectors = 1;  ///< of the largest tile; Fold: columns
  std::int64_t chains = 1;   ///< sums that alternate over k, where a tile has too few to keep the units busy
  bool pack_rows = false;    ///< a cell's rows are copied, converted, before they are used
  bool pack_lanes = false;   ///< a group's panel is copied so that a step's vectors lie together
  bool rows_ready = false, lanes_ready = false;  ///< what would be packed is a constant that lies in panels
  bool pack_all = false;     ///< what is packed, panels always, are four bytes at a time
  bool pack_at_once = false; ///< all panels of a cell together, step by step, instead of one after the other
  bool share_panels = false;  ///< a panel serves all indices of the outer axes that it does not depend on
  std::int64_t sum_outer = 0;  ///< of so many summed axes, the outermost, one index is done at a time
  std::int64_t sum_block = 0;  ///< steps of the innermost summed axis that are done at a time; 0: all
  bool sums_wait() const { return sum_outer > 0 || sum_block > 0; }  ///< partial sums, in scratch
  bool store_through = false;  ///< sums go through scratch, for the results' work is long
  std::int64_t row_cells = 1, lane_cells = 1;  ///< the grid's cells along both axes
  std::int64_t shared_cells = 1;               ///< and along the first of the axes that share panels
  std::int64_t blocks = 1;
};

/// Chooses. `parts`: 0 without a grid; else the grid of what is worth one has as many blocks at least along batches or, where
/// there are none, along rows, if it can. The order of sums depends on `problem` and the sums' type alone.
DotForm choose_form(const DotProblem&, const DotFusion&, const VectorUnit&, std::int64_t parts);

/// Whether what one index of the stage's axis reads is little enough to lie in scratch.
bool may_stage(const DotProblem&, std::int64_t element_bytes);

std::string to_string(const DotForm&);

}  // namespace hloom::kernels
