// Kernels that keep a row near and go over it several times: softmax, norms, their gradients.
#pragma once

#include <vector>

#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// Whether fusion/form_rows.h formed this fusion.
bool is_rows_fusion(const hlo::Instruction& fusion);

/// Adds the loops of a fusion over rows. For each row there is a pass for the sums that depend on no other, then one for those
/// that depend on these, and so on; a value that is needed in several passes is kept in scratch, taken from the result that it
/// is, or computed again, whatever is least work. Sums take their elements in the order that they have outside of such a
/// kernel. Rows whose sums do not go by lanes are taken side by side, one in each lane. Sums over rows (fusion/column_sums.h) take
/// each row's elements as it goes by; their blocks of rows are then the grid.
/// Returns the roots that are no values of a row: they are left to the caller.
/// `blocks` > 1: the grid that rows are shared out in; 1: all rows.
/// Errors: Unimplemented, naming an instruction that has no element form.
Expected<std::vector<Root>> plan_rows_into(Builder&, const hlo::Instruction& fusion, const Places&, std::vector<Root> roots,
                                           std::int64_t blocks);

}  // namespace hloom::kernels
