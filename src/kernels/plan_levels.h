// Kernels that make all levels of some lines of an array while these are near: scans written by halves or doubled distances.
#pragma once

#include <vector>

#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// Whether fusion/form_levels.h formed this fusion.
bool is_levels_fusion(const hlo::Instruction& fusion);

/// Adds the loops of a fusion by levels. Lines go side by side, one in each lane; for each group of lines there is a nest for each
/// value that is read at several places, which lies in scratch then, and for each result. So the association is that of the
/// HLO. Where arrays lie dense along the lines, registers turn them over on the way into scratch and out of it.
/// `blocks` > 1: the grid that lines are shared out in; 1: all lines.
/// Errors: Unimplemented, naming an instruction that has no element form.
Expected<> plan_levels_into(Builder&, const hlo::Instruction& fusion, const Places&, const std::vector<Root>&, std::int64_t blocks);

}  // namespace hloom::kernels
