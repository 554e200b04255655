// Finds what goes by levels: scans written by halves (jax.lax.associative_scan) or by doubled distances, of any combiner.
#pragma once

#include <vector>

#include "fusion/form_rows.h"
#include "fusion/level_space.h"

namespace hloom::fusion {

/// Instructions that become one kernel, which takes some lines and makes all levels of these while they are near.
struct LevelGroup {
  LevelSpace space;
  std::vector<hlo::Instruction*> members;  ///< operands before users
};

/// The level groups of a computation that runs, of instructions that are in none of `rows`: what hangs together by reads that
/// stay in their line (stays_in_line), between slices, pads and concatenates of at least three extents, such that no way leaves a
/// group and comes back, not even through others. Says on a slice, pad or concatenate why its group is refused,
/// decisions["not_levels"]. Changes nothing else.
/// Cost: linear in the computation for each space and each group; of some spaces no more are looked at.
std::vector<LevelGroup> form_levels(hlo::Computation&, const std::vector<RowGroup>& rows);

}  // namespace hloom::fusion
