// Indices that programs compute: of slices, gathers and scatters.
#pragma once

#include <cstdint>

#include "hlo/literal.h"

namespace hloom::interp {

/// Element i of an array of indices, in its own type: what exceeds std::int64_t is the largest one, which no array
/// reaches.
std::int64_t start_index(const hlo::Literal& indices, std::int64_t i);

}  // namespace hloom::interp
