// Numbers as literals.
#pragma once

#include "generate/random.h"
#include "hlo/literal.h"

namespace hloom::generate {

/// The scalar nearest to `value`; integers keep its low bits.
hlo::Literal number(DType, std::int64_t value);

/// An array of random numbers: integers up to 4 in magnitude; `wild`: also fractions, huge and tiny ones, and special
/// values; of integers also the ends of their range.
hlo::Literal numbers(const Shape&, Random&, bool wild);

}  // namespace hloom::generate
