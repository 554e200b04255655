// What an instruction may or must write over: the one place that says so for planning, copies and checks.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/module.h"

namespace hloom::buffers {

/// Result leaf `result` is written over leaf `operand_leaf` of operand `operand`: only what changes is written, the
/// rest of the bytes is kept.
struct InPlacePair {
  std::int64_t result = 0;
  std::int64_t operand = 0;
  std::int64_t operand_leaf = 0;
  bool operator==(const InPlacePair&) const = default;
};

/// The pairs of an instruction: window updates and scatters that indexing::plan_window_update() plans in place,
/// declared aliases of fusions and custom calls. decisions["in_place"] = "RESULT:OPERAND,…", where it stands, is
/// believed instead of planning again. Pairs that do not exist or do not fit in size are left out.
std::vector<InPlacePair> in_place_pairs(const hlo::Instruction&);

/// Writes the plans on the window updates of the computations that run as steps: decisions["in_place"] and, for people,
/// decisions["update_plan"].
void note_in_place(hlo::Module&);

/// Whether result leaf `result` may be written over operand `operand` because each element of the operand is read for
/// the result's element at the same index only: elementwise instructions, and fusions that use the parameter so for
/// all their results, which then have one shape; in a kernel over rows, what its last pass writes.
bool may_overwrite(const hlo::Instruction&, std::int64_t operand, std::int64_t result);

}  // namespace hloom::buffers
