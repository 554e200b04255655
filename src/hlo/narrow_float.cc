#include "hlo/narrow_float.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace hloom::hlo {
namespace {

using Special = FloatFormat::Special;

std::uint64_t low_mask(int bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

std::uint64_t sign_mask(const FloatFormat& f) {
  return f.special == Special::PowerOfTwo ? 0 : 1ull << (f.exponent_bits + f.mantissa_bits);
}

// The magnitude's bits of the largest finite value.
std::uint64_t largest_bits(const FloatFormat& f) {
  const std::uint64_t ones = low_mask(f.exponent_bits + f.mantissa_bits);
  switch (f.special) {
    case Special::Ieee: return (low_mask(f.exponent_bits) << f.mantissa_bits) - 1;
    case Special::NanAllOnes:
    case Special::PowerOfTwo: return ones - 1;
    case Special::NanNegZero:
    case Special::NoSpecials: return ones;
  }
  return ones;
}

// |value| rounded to the format's grid as if the exponent had no upper end: mantissa and exponent fields in one
// number, which grows through the fields as the value does.
std::uint64_t round_magnitude(const FloatFormat& f, double value) {
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m·2^exponent, m in [0.5, 1)
  const int lowest = 1 - f.bias;  // of normal numbers
  const int scale = std::max(exponent - 1, lowest) - f.mantissa_bits;  // of the last place
  const double units = std::nearbyint(std::ldexp(value, -scale));      // ties to even: the default mode
  const auto whole = static_cast<std::uint64_t>(units);
  const auto field = static_cast<std::uint64_t>(scale + f.mantissa_bits - lowest);  // 0 for denormals and the first
  return (field << f.mantissa_bits) + whole;
}

}  // namespace

const FloatFormat& float_format(DType type) {
  static constexpr FloatFormat kF64{11, 52, 1023, Special::Ieee}, kF32{8, 23, 127, Special::Ieee},
      kBF16{8, 7, 127, Special::Ieee}, kF16{5, 10, 15, Special::Ieee}, kF8E5M2{5, 2, 15, Special::Ieee},
      kF8E4M3{4, 3, 7, Special::Ieee}, kF8E3M4{3, 4, 3, Special::Ieee}, kF8E4M3FN{4, 3, 7, Special::NanAllOnes},
      kF8E4M3B11FNUZ{4, 3, 11, Special::NanNegZero}, kF8E5M2FNUZ{5, 2, 16, Special::NanNegZero},
      kF8E4M3FNUZ{4, 3, 8, Special::NanNegZero}, kF8E8M0FNU{8, 0, 127, Special::PowerOfTwo},
      kF4E2M1FN{2, 1, 1, Special::NoSpecials};
  switch (type) {
    case DType::F64: return kF64;
    case DType::F32: return kF32;
    case DType::BF16: return kBF16;
    case DType::F16: return kF16;
    case DType::F8E5M2: return kF8E5M2;
    case DType::F8E4M3: return kF8E4M3;
    case DType::F8E3M4: return kF8E3M4;
    case DType::F8E4M3FN: return kF8E4M3FN;
    case DType::F8E4M3B11FNUZ: return kF8E4M3B11FNUZ;
    case DType::F8E5M2FNUZ: return kF8E5M2FNUZ;
    case DType::F8E4M3FNUZ: return kF8E4M3FNUZ;
    case DType::F8E8M0FNU: return kF8E8M0FNU;
    case DType::F4E2M1FN: return kF4E2M1FN;
    default: HLOOM_CHECK(!"a float type"); return kF64;
  }
}

std::uint64_t default_nan(const FloatFormat& f) {
  HLOOM_CHECK(f.has_nan());
  switch (f.special) {
    case Special::Ieee:
      return (low_mask(f.exponent_bits) << f.mantissa_bits) | (1ull << (f.mantissa_bits - 1));
    case Special::NanNegZero: return sign_mask(f);
    default: return low_mask(f.exponent_bits + f.mantissa_bits);
  }
}

bool is_nan_bits(const FloatFormat& f, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & low_mask(f.exponent_bits + f.mantissa_bits);
  switch (f.special) {
    case Special::Ieee: return magnitude > (low_mask(f.exponent_bits) << f.mantissa_bits);
    case Special::NanNegZero: return (bits & low_mask(f.width())) == sign_mask(f);
    case Special::NoSpecials: return false;
    default: return magnitude == low_mask(f.exponent_bits + f.mantissa_bits);
  }
}

double decode_float(const FloatFormat& f, std::uint64_t bits) {
  const int width = f.exponent_bits + f.mantissa_bits;
  const bool negative = (bits & sign_mask(f)) != 0;
  const std::uint64_t mantissa = bits & low_mask(f.mantissa_bits);
  const auto exponent = static_cast<int>((bits & low_mask(width)) >> f.mantissa_bits);
  if (is_nan_bits(f, bits)) {
    const std::uint64_t payload = f.special == Special::Ieee ? mantissa << (52 - f.mantissa_bits) : 1ull << 51;
    return std::bit_cast<double>((negative && f.special != Special::NanNegZero ? 1ull << 63 : 0) | 0x7FFull << 52 |
                                 payload);
  }
  double value;
  if (f.special == Special::PowerOfTwo)
    value = std::ldexp(1.0, exponent - f.bias);
  else if (f.has_infinity() && exponent == static_cast<int>(low_mask(f.exponent_bits)))
    value = INFINITY;
  else if (exponent == 0)
    value = std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  else
    value = std::ldexp(static_cast<double>(mantissa | 1ull << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

std::uint64_t encode_float(const FloatFormat& f, double value) {
  const bool negative = std::signbit(value);
  if (f.special == Special::PowerOfTwo) {
    if (!(value > 0) || std::isinf(value)) return default_nan(f);
    int exponent = 0;
    const double m = std::frexp(value, &exponent);  // [0.5, 1)
    // Nearest power of two; the midpoint 1.5·2^k goes up.
    std::int64_t field = exponent - 1 + f.bias;
    if (m >= 0.75) ++field;
    if (field < 0) return 0;
    return field > 254 ? default_nan(f) : static_cast<std::uint64_t>(field);
  }
  const std::uint64_t sign = negative ? sign_mask(f) : 0;
  if (std::isnan(value)) {
    if (f.special == Special::NoSpecials) return sign_mask(f);
    return f.special == Special::NanNegZero ? default_nan(f) : sign | default_nan(f);
  }
  const double magnitude = std::fabs(value);
  const std::uint64_t top = largest_bits(f);
  std::uint64_t rounded = 0;
  if (std::isinf(value))
    rounded = top + 1;
  else if (magnitude != 0)
    rounded = round_magnitude(f, magnitude);
  if (rounded > top) {
    if (f.special == Special::NoSpecials) return sign | top;
    if (f.has_infinity()) return sign | (low_mask(f.exponent_bits) << f.mantissa_bits);
    return f.special == Special::NanNegZero ? default_nan(f) : sign | default_nan(f);
  }
  if (rounded == 0 && f.special == Special::NanNegZero) return 0;  // no -0
  return sign | rounded;
}

double largest_finite(const FloatFormat& f) { return decode_float(f, largest_bits(f)); }

}  // namespace hloom::hlo
