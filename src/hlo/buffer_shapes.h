// Buffers, b(…): memory that custom calls write in place. Their value is that of the array they hold.
#pragma once

#include <algorithm>
#include <utility>

#include "hloom/shape.h"

namespace hloom::hlo {

inline bool holds_buffer(const Shape& shape) {
  return shape.dtype() == DType::Buffer || std::ranges::any_of(shape.elements(), holds_buffer);
}

/// The shape with the arrays in place of the buffers that hold them.
inline Shape without_buffers(Shape shape) {
  if (shape.dtype() == DType::Buffer) return shape.element(0);
  for (Shape& e : shape.elements()) e = without_buffers(std::move(e));
  return shape;
}

}  // namespace hloom::hlo
