// Reshapes of arrays with run-time sizes, and the check of a size.
#pragma once

#include "passes/dynamic_rules.h"

namespace hloom::passes {

/// What counts of `x`, in row-major order, in an array of bounds `dims` of which `to` counts.
Instruction* reshape_in_bounds(Make&, Instruction* x, const DimSizes& from, const Dims& dims, const DimSizes& to);

/// The size; a run ends with an error where it is not in [least, most]. A constant in there is itself.
Instruction* checked_size(Make&, Instruction* size, std::int64_t least, std::int64_t most);
Instruction* checked_size(Make&, Instruction* size, Instruction* least, Instruction* most);

/// The custom call that does so.
inline constexpr const char* kCheckSize = "hloom.check_size";

}  // namespace hloom::passes
