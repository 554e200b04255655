#include "cli/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hlo/narrow_float.h"

namespace hloom::cli {
namespace {

/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: splitmix64.
class Stream {
 public:
  explicit Stream(std::uint64_t state) : state_(state) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// A multiple of 2^(1-digits) in [-1, 1): every one of them is a value of the type.
std::uint64_t float_bits(DType type, std::uint64_t random) {
  const hlo::FloatFormat& format = hlo::float_format(type);
  const int digits = format.mantissa_bits + 1;
  const double value = std::ldexp(static_cast<double>(random >> (64 - digits)), 1 - digits) - 1;
  if (format.special == hlo::FloatFormat::Special::PowerOfTwo)  // has neither sign nor zero
    return hlo::encode_float(format, std::ldexp(1.0, -static_cast<int>(random % 4)));
  if (type == DType::F64) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  return hlo::encode_float(format, value);
}

std::uint64_t element_bits(DType type, std::uint64_t random) {
  if (type == DType::Pred) return random >> 63;
  if (is_floating(type)) return float_bits(type, random);
  const int values = bit_width(type) - (is_signed(type) ? 1 : 0);  // bits of those that are not negative
  return random >> 32 & ((std::uint64_t{1} << std::min(values, 3)) - 1);
}

}  // namespace

hlo::Literal random_literal(const Shape& shape, std::uint64_t seed, std::uint64_t number) {
  hlo::Literal literal(shape);
  Stream stream(Stream(seed).next() ^ Stream(~number).next());
  const DType part = real_type(shape.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  const std::span<std::byte> bytes = literal.mutable_bytes();
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    const std::uint64_t bits = element_bits(part, stream.next());
    std::memcpy(bytes.data() + at, &bits, width);
  }
  return literal;
}

}  // namespace hloom::cli
