// Finds what goes row by row: softmax, norms, their gradients, whatever sums up rows and uses the sums on the same rows.
#pragma once

#include <vector>

#include "fusion/row_space.h"
#include "hlo/module.h"

namespace hloom::fusion {

/// Instructions that become one kernel, which keeps a row near and goes over it several times.
struct RowGroup {
  RowSpace space;
  std::vector<hlo::Instruction*> members;  ///< operands before users
};

/// The row groups of a computation that runs: maximal sets of instructions tied to reduces of one space (tied_extents()), with a
/// sum that comes back to its row or several sums, such that no way leaves a group and comes back, not even through others.
/// Says in which pass over the row a reduce is made, decisions["rows"], or why its sum is used by a kernel of its own,
/// decisions["not_rows"]. Changes nothing else.
/// Cost: linear in the computation for each space of reduces; beyond a budget no more groups are made.
std::vector<RowGroup> form_rows(hlo::Computation&);

/// The reduces of a fused computation that was formed so.
std::vector<const hlo::Instruction*> row_reduces(const hlo::Computation& fused);

}  // namespace hloom::fusion
