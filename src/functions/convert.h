// Conversions between element types, each with one rounding. A value of a narrow float is its bits: uint16_t for
// bf16 and f16, uint8_t for f8 and f4.
#pragma once

#include <bit>

#include "functions/real.h"
#include "hlo/narrow_float.h"

namespace hloom::functions {

using hlo::FloatFormat;

/// x rounded to a float by cutting, with the last bit set if that lost anything ("round to odd"). Rounding the
/// result again, to at most 22 bits, gives the same as rounding x once.
template <class B>
Value<B, float> round_to_odd(Value<B, double> x) {
  const Value<B, float> nearest = to_real<float>(x);
  const Value<B, double> back = to_real<double>(nearest);
  const auto too_large = abs(back) > abs(x);
  const auto cut = bits(nearest) - resize<std::uint32_t>(too_large);
  return bits_as<float>(cut | resize<std::uint32_t>(back != x));
}

/// The same for a 64-bit integer and a double.
template <class B, class T>
  requires(std::integral<T> && sizeof(T) == 8)
Value<B, double> round_to_odd(Value<B, T> x) {
  // Both halves are exact, and so is the error of their sum.
  const auto high = to_real<double>((x >> T{32})) * 0x1p32;
  const auto low = to_real<double>(resize<std::uint32_t>(x));
  const auto sum = high + low;
  const auto error = low - (sum - high);
  const auto too_large = select(sum > 0, error, -error) < 0;
  const auto cut = bits(sum) - resize<std::uint64_t>(too_large);
  return bits_as<double>(cut | resize<std::uint64_t>(error != error(0)));
}

namespace narrow {

inline std::uint32_t largest_code(const FloatFormat& f) {
  const std::uint32_t ones = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.special) {
    case FloatFormat::Special::Ieee: return ones - (1u << f.mantissa_bits);
    case FloatFormat::Special::NanAllOnes:
    case FloatFormat::Special::PowerOfTwo: return ones - 1;
    case FloatFormat::Special::NanNegZero:
    case FloatFormat::Special::NoSpecials: return ones;
  }
  return ones;
}

/// f8e8m0fnu: the exponent of a positive number, nearest in value; ties to the larger.
template <class B>
Value<B, std::uint32_t> encode_power_of_two(Value<B, float> x) {
  const auto b = bits(x);
  const auto nearest = (b + 0x400000u) >> 23u;
  // Below the normal floats, 2^-127 is code 0, and 1.5 times that a tie.
  const auto code = select(b < b(0x800000u), resize<std::uint32_t>(b >= 0x600000u), nearest);
  return select((x > 0) & (code < code(255u)), code, 255u);
}

/// bf16: the upper half of a float, rounded. No carry reaches the sign, and infinity rounds to itself.
template <class B>
Value<B, std::uint32_t> encode_upper_half(Value<B, float> x) {
  const auto b = bits(x);
  const auto high = b >> 16u;
  const auto rounded = (b + ((high & 1u) + 0x7FFFu)) >> 16u;
  return select(is_nan(x), (high & 0x8000u) | 0x7FC0u, rounded);
}

/// The code of |x| if x is a number: rounded to nearest even, with exponents beyond the format's.
template <class B>
Value<B, std::uint32_t> encode_magnitude(const FloatFormat& f, Value<B, float> x) {
  const auto shift = static_cast<std::uint32_t>(23 - f.mantissa_bits);
  const auto a = bits(abs(x));
  const auto rounded = (a + ((1u << (shift - 1)) - 1) + ((a >> shift) & 1u)) >> shift;
  const auto lift = static_cast<std::uint32_t>(127 - f.bias);
  if (lift == 0) return rounded;
  // Below the normal range, adding a number whose last place is the format's rounds at the right place.
  const std::uint32_t magic_bits = (lift + 1 + shift) << 23;
  const auto magic = bits_as<float>(a(magic_bits));
  const auto denormal = bits(abs(x) + magic) - magic_bits;
  return select(a < a((lift + 1) << 23), denormal, rounded - (lift << f.mantissa_bits));
}

}  // namespace narrow

/// x in the format, rounded to nearest even. What overflows becomes infinity, or NaN where there is none, or the
/// largest number where there is no NaN either. As hlo::encode_float().
template <class U, class B>
Value<B, U> encode(const FloatFormat& f, Value<B, float> x) {
  using Special = FloatFormat::Special;
  using Code = Value<B, std::uint32_t>;
  if (f.special == Special::PowerOfTwo) return resize<U>(narrow::encode_power_of_two(x));
  if constexpr (requires(B b) { b.float_to_half(x.raw); })
    if (f.exponent_bits == 5 && f.mantissa_bits == 10)
      return resize<U>(Value<B, std::uint16_t>{x.b, x.b->float_to_half(x.raw)});
  if (f.exponent_bits == 8 && f.mantissa_bits == 7) return resize<U>(narrow::encode_upper_half(x));
  const std::uint32_t sign_mask = 1u << (f.width() - 1);
  const std::uint32_t largest = narrow::largest_code(f);
  const Code magnitude = narrow::encode_magnitude(f, x);
  const Code sign = (bits(x) >> static_cast<std::uint32_t>(32 - f.width())) & sign_mask;
  if (f.special == Special::NoSpecials) {
    const Code saturated = select(magnitude > largest, largest, magnitude) | sign;
    return resize<U>(select(is_nan(x), sign_mask, saturated));
  }
  const auto nan_code = static_cast<std::uint32_t>(hlo::default_nan(f));
  if (f.special == Special::NanNegZero) {
    const Code number = select(magnitude == magnitude(0u), 0u, magnitude | sign);
    return resize<U>(select(is_nan(x) | (magnitude > largest), nan_code, number));
  }
  const std::uint32_t overflow = f.has_infinity() ? largest + 1 : nan_code;
  const Code number = select(magnitude > largest, overflow, magnitude);
  return resize<U>(select(is_nan(x), nan_code, number) | sign);
}

/// The value of a code. Exact. As hlo::decode_float(), but for the payloads of NaNs.
template <class B, class U>
Value<B, float> decode(const FloatFormat& f, Value<B, U> code) {
  using Special = FloatFormat::Special;
  using Word = Value<B, std::uint32_t>;
  const Word c = resize<std::uint32_t>(code);
  if (f.exponent_bits == 8 && f.mantissa_bits == 7) return bits_as<float>(c << 16u);
  if constexpr (requires(B b) { b.half_to_float(code.raw); })
    if (f.exponent_bits == 5 && f.mantissa_bits == 10)
      return {code.b, code.b->half_to_float(resize<std::uint16_t>(code).raw)};
  if (f.special == Special::PowerOfTwo)
    return bits_as<float>(select(c == c(0u), 0x400000u, select(c == c(255u), 0x7FC00000u, c << 23u)));

  const auto m = static_cast<std::uint32_t>(f.mantissa_bits);
  const Word magnitude = c & ((1u << (f.width() - 1)) - 1u);
  const Word normal = (magnitude << (23u - m)) + (static_cast<std::uint32_t>(127 - f.bias) << 23);
  const auto unit = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - f.bias - f.mantissa_bits) << 23);
  const Value<B, float> denormal = to_real<float>(magnitude) * unit;
  Word value = select(magnitude < magnitude(1u << m), bits(denormal), normal);
  const std::uint32_t largest = narrow::largest_code(f);
  if (f.special == Special::Ieee)
    value = select(magnitude > largest, select(magnitude == magnitude(largest + 1), 0x7F800000u, value(0x7FC00000u)),
                   value);
  if (f.special == Special::NanAllOnes) value = select(magnitude > largest, 0x7FC00000u, value);
  const Word sign = (c >> static_cast<std::uint32_t>(f.width() - 1)) << 31u;
  if (f.special == Special::NanNegZero) {
    const auto nan = (magnitude == magnitude(0u)) & (sign != sign(0u));
    return bits_as<float>(select(nan, 0x7FC00000u, value | sign));
  }
  return bits_as<float>(value | sign);
}

}  // namespace hloom::functions
