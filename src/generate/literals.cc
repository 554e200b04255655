#include "generate/literals.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "hlo/narrow_float.h"

namespace hloom::generate {
namespace {

std::uint64_t float_bits(DType type, double value) {
  if (type != DType::F64) return hlo::encode_float(hlo::float_format(type), value);
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::uint64_t mask(DType type) {
  const int width = bit_width(type);
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

// The bits as literals have them: sub-byte integers fill their byte with the sign.
std::uint64_t integer_bits(DType type, std::uint64_t value) {
  value &= mask(type);
  const bool negative = is_signed(type) && ((value >> (bit_width(type) - 1)) & 1) != 0;
  return negative ? value | ~mask(type) : value;
}

std::uint64_t bits_of(DType type, std::int64_t value) {
  if (type == DType::Pred) return value != 0 ? 1 : 0;
  if (is_floating(type)) return float_bits(type, static_cast<double>(value));
  return integer_bits(type, static_cast<std::uint64_t>(value));
}

double wild_float(DType type, Random& random) {
  const hlo::FloatFormat& format = hlo::float_format(type);
  const double sign = random.chance(50) ? -1 : 1;
  switch (random.pick(0, 19)) {
    case 0: return std::numeric_limits<double>::quiet_NaN();
    case 1: return sign * std::numeric_limits<double>::infinity();
    case 2: return sign * 0.0;
    case 3: return sign * std::ldexp(static_cast<double>(random.pick(1, 9)), 1 - format.bias - format.mantissa_bits);
    case 4: return sign * hlo::largest_finite(format);
    case 5:
      return sign *
             std::ldexp(1.0 + static_cast<double>(random.pick(0, 7)) / 8, static_cast<int>(random.pick(-20, 20)));
    case 6: return sign * (static_cast<double>(random.pick(0, 6)) + 0.5);
    case 7:
    case 8: return static_cast<double>(random.pick(-4, 4));
    default:
      return sign * static_cast<double>(random.next() >> 40) * std::ldexp(1.0, static_cast<int>(random.pick(-24, -21)));
  }
}

std::uint64_t wild_integer(DType type, Random& random) {
  switch (random.pick(0, 5)) {
    case 0: return integer_bits(type, std::uint64_t{1} << (bit_width(type) - 1));        // the least signed
    case 1: return integer_bits(type, (std::uint64_t{1} << (bit_width(type) - 1)) - 1);  // the greatest signed
    case 2: return integer_bits(type, ~std::uint64_t{0});
    case 3: return integer_bits(type, random.next());
    default: return integer_bits(type, static_cast<std::uint64_t>(random.pick(-9, 9)));
  }
}

std::uint64_t random_bits(DType type, Random& random, bool wild) {
  if (type == DType::Pred) return random.next() & 1;
  if (is_floating(type))
    return float_bits(type, wild ? wild_float(type, random) : static_cast<double>(random.pick(-4, 4)));
  if (wild) return wild_integer(type, random);
  return integer_bits(type, static_cast<std::uint64_t>(random.pick(is_unsigned(type) ? 0 : -4, 4)));
}

}  // namespace

hlo::Literal number(DType type, std::int64_t value) {
  hlo::Literal literal(Shape::scalar(type));
  const std::uint64_t bits = bits_of(real_type(type), value);
  std::memcpy(literal.mutable_bytes().data(), &bits, static_cast<std::size_t>(byte_width(real_type(type))));
  return literal;
}

hlo::Literal numbers(const Shape& shape, Random& random, bool wild) {
  hlo::Literal literal(shape);
  const DType part = real_type(shape.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  const std::span<std::byte> bytes = literal.mutable_bytes();
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    const std::uint64_t bits = random_bits(part, random, wild);
    std::memcpy(bytes.data() + at, &bits, width);
  }
  return literal;
}

}  // namespace hloom::generate
