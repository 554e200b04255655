// Sorts that the library's routine does.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "library/sort.h"

namespace hloom::compiler {

/// What there is to sort for a fused sort or topk (hlo/sort_form.h) by total orders of whole bytes, over lines long enough that the routine is quicker
/// than a kernel, of arrays in any dense layout; nothing for any other root. The order is that of a stable sort by the
/// comparator.
std::optional<library::SortProblem> sort_problem(const hlo::Instruction& root);

}  // namespace hloom::compiler
