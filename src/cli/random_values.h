// Made-up inputs: the same ones for the same seed, on every machine.
#pragma once

#include <cstdint>

#include "hlo/literal.h"

namespace hloom::cli {

/// An array for leaf `number` of the parameters. Floats are uniform in [-1, 1), of as many digits as the type has; both
/// parts of complex ones; integers uniform in [0, 8), as far as the type goes, so that they will do as indices; pred
/// uniform. Each leaf has a stream of its own. Needs: an array whose size fits.
hlo::Literal random_literal(const Shape& shape, std::uint64_t seed, std::uint64_t number);

}  // namespace hloom::cli
