// Sorts of few long lines: all threads work at one line. Internal to library/.
#pragma once

#include <cstdint>

#include "base/aligned_bytes.h"
#include "library/sort.h"

namespace hloom::library {

/// Whether lines are so long and so few that one call for each would leave threads without work.
bool is_long_sort(const SortProblem&, std::int64_t lines);

/// The same result as from whole lines, in calls one after the other whose grids are parts of a line. The parts depend on the
/// problem alone. `descriptor` is that of plan_sort(); `wide`: keys of eight bytes.
RoutinePlan plan_long_sort(const SortProblem&, std::int64_t lines, bool wide, const base::AlignedBytes& descriptor);

}  // namespace hloom::library
