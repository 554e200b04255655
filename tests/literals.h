// Arguments for tests.
#pragma once

#include <cstdint>

#include "hlo/literal.h"

namespace hloom::tests {

/// Small whole numbers from -11 to 11, s32 from 0 to 6, none the same as the one before. Needs: f32 or s32.
inline hlo::Literal numbered(const Shape& shape, std::int64_t from) {
  hlo::Literal literal(shape);
  for (std::int64_t k = 0; k < shape.num_elements(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (shape.dtype() == DType::F32)
      literal.mutable_data<float>()[at] = static_cast<float>((from + 7 * k) % 23 - 11);
    else
      literal.mutable_data<std::int32_t>()[at] = static_cast<std::int32_t>((from + 3 * k) % 7);
  }
  return literal;
}

}  // namespace hloom::tests
