// What each pass over a row computes, and what is kept for later ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fusion/row_space.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// Rows that are taken side by side where sums do not go by lanes.
inline constexpr std::int64_t kRowLanes = 16;

/// A value with an element for each element of the row that is made in one pass and needed in later ones.
struct Held {
  const hlo::Instruction* value = nullptr;
  int made = 0;                    ///< the pass that makes it
  std::vector<int> needed;         ///< later passes that read it
  const Root* result = nullptr;    ///< where it is written anyway; else it has scratch
  std::int64_t scratch_offset = 0; ///< bytes
};

/// A fusion over rows, pass by pass. Passes are numbered from 1; pass p makes the sums whose own values need p - 1 before.
struct RowPasses {
  fusion::RowSpace space;
  fusion::Extents extents;
  std::vector<std::vector<const hlo::Instruction*>> reduces;  ///< by pass; [0] is empty
  std::vector<std::vector<const Root*>> full_roots;           ///< stored in that pass
  std::vector<std::vector<const Root*>> row_roots;            ///< stored after that pass
  std::vector<std::vector<const Root*>> column_roots;         ///< sums over rows that get the row's elements in that pass
  std::vector<Root> others;                                   ///< no values of a row
  std::vector<Held> held;
  std::int64_t scratch_bytes = 0;
  std::int64_t blocks = 0;                                    ///< of rows that column_roots take; 0 without such
  int num_passes() const { return static_cast<int>(reduces.size()) - 1; }
  /// Rows whose elements lie side by side in scratch.
  std::int64_t rows_together() const { return space.by_lanes ? 1 : std::min(kRowLanes, space.rows()); }
};

/// `roots` has to outlive the result, which points to its elements. Needs: is_rows_fusion().
RowPasses row_passes(const hlo::Instruction& fusion, const std::vector<Root>& roots);

}  // namespace hloom::kernels
