// Sorts that the library's routine does.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "library/sort.h"

namespace hloom::compiler {

/// What there is to sort for a sort or topk by total orders of whole bytes, over lines long enough that the routine is quicker
/// than a kernel, of arrays in any dense layout; nothing for any other instruction. The order is that of a stable sort by the
/// comparator.
std::optional<library::SortProblem> sort_problem(const hlo::Instruction&);

}  // namespace hloom::compiler
