// The order of all values of a float type, NaNs and zeros of either sign included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hlo/narrow_float.h"
#include "hloom/shape.h"

namespace hloom::interp {

/// Bits of element i of an array of elements of `width` bytes (at most 8).
inline std::uint64_t bits_of(const std::byte* from, std::int64_t i, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from + i * static_cast<std::int64_t>(width), width);
  return bits;
}

/// Reads floats as integers that are in the order of IEEE 754's totalOrder: the pattern as a signed number, negative
/// ones turned about.
struct TotalOrder {
  using Exact = std::int64_t;
  explicit TotalOrder(DType type)
      : bytes(static_cast<std::size_t>(byte_width(type))),
        is_signed(hlo::float_format(type).special != hlo::FloatFormat::Special::PowerOfTwo),
        unused(64 - hlo::float_format(type).width()) {}
  Exact load(const std::byte* from, std::int64_t i) const {
    const std::uint64_t bits = bits_of(from, i, bytes);
    if (!is_signed) return static_cast<Exact>(bits);
    const auto extended = static_cast<Exact>(bits << unused) >> unused;
    const auto positive = static_cast<Exact>(~std::uint64_t{0} >> (unused + 1));
    return extended < 0 ? extended ^ positive : extended;
  }
  std::size_t bytes;
  bool is_signed;
  int unused;
};

}  // namespace hloom::interp
