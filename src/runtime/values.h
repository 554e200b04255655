// Checks the memory that a run is given. Internal to runtime/.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hloom/error.h"
#include "runtime/arena.h"
#include "runtime/executor.h"
#include "runtime/program.h"

namespace hloom::runtime {

/// Counts, sizes and alignments, then overlaps: a result may be exactly the parameter it is aliased with, and overlaps
/// nothing else. `ranges` is room with a capacity for all. Errors: InvalidArgument. Cost: sorting.
Expected<> check_values(const Program&, Values parameters, Values results, std::vector<Range>& ranges);

}  // namespace hloom::runtime
