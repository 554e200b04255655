// Packed arrays: several sub-byte elements to a byte, where a layout says E(1), E(2) or E(4).
#pragma once

#include "hloom/shape.h"

namespace hloom::hlo {

/// Bits from one element to the next where several share a byte: 1, 2 or 4; else 0.
inline int packed_bits(const Shape& array) {
  const std::int64_t bits = array.layout().parts().element_bits;
  return bits == 1 || bits == 2 || bits == 4 ? static_cast<int>(bits) : 0;
}

/// Whether the layout is plain but for elements of so many bits: a byte's part that holds them, or their whole bytes.
inline bool is_plain_but_for_bits(const Shape& array) {
  const std::int64_t bits = array.layout().parts().element_bits;
  const bool whole = bits == 0 || bits == 8 * byte_width(array.dtype());
  const bool part = packed_bits(array) >= bit_width(array.dtype()) && bit_width(array.dtype()) < 8;
  if (!whole && !part) return false;
  Layout::Extra rest = array.layout().parts();
  rest.element_bits = 0;
  Layout plain = array.layout();
  plain.set_parts(rest);
  return plain.is_plain();
}

/// The shape with its elements a byte each, in the same order.
inline Shape unpacked(Shape array) {
  Layout layout = array.layout();
  Layout::Extra parts = layout.parts();
  parts.element_bits = 0;
  layout.set_parts(std::move(parts));
  array.set_layout(std::move(layout));
  return array;
}

/// The lowest bit, in its byte, of the n-th element there: the first element has the lowest bits, as peers have them in
/// memory. A short last byte is filled from the bottom, its rest is 0.
inline int packed_shift(int n, int bits) { return n * bits; }

}  // namespace hloom::hlo
