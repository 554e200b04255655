// The float formats narrower than f64: bit patterns to values and back, with one rounding.
#pragma once

#include <cstdint>

#include "hloom/shape.h"

namespace hloom::hlo {

/// How a float type lays out its bits (hlo-text 7.1).
struct FloatFormat {
  enum class Special : std::uint8_t {
    Ieee,         ///< infinities and NaNs at the top exponent
    NanAllOnes,   ///< no infinity; NaN = all exponent and mantissa bits set (…fn)
    NanNegZero,   ///< no infinity, no -0; NaN = the pattern of -0 (…fnuz)
    NoSpecials,   ///< neither infinity nor NaN (f4e2m1fn)
    PowerOfTwo,   ///< f8e8m0fnu: no sign, no zero; NaN = 0xFF
  };
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Special special;
  int width() const { return (special == Special::PowerOfTwo ? 0 : 1) + exponent_bits + mantissa_bits; }
  bool has_infinity() const { return special == Special::Ieee; }
  bool has_nan() const { return special != Special::NoSpecials; }
};

/// The format of a float type. Needs: is_floating(type).
const FloatFormat& float_format(DType type);

/// The value of the low width() bits. Exact. Needs: a format no wider than f64. NaN payloads: the mantissa field
/// is kept at the top of the double's.
double decode_float(const FloatFormat&, std::uint64_t bits);

/// The nearest value of the format, ties to even, as bits. Overflow gives infinity, or NaN where there is none
/// (NoSpecials saturates). NaN gives the default quiet NaN with the sign kept where the format has one
/// (NoSpecials: -0, provisional). PowerOfTwo: values that are not positive give NaN.
std::uint64_t encode_float(const FloatFormat&, double value);

/// The default quiet NaN's bits, positive. Needs: has_nan().
std::uint64_t default_nan(const FloatFormat&);
/// The largest finite value.
double largest_finite(const FloatFormat&);
bool is_nan_bits(const FloatFormat&, std::uint64_t bits);

}  // namespace hloom::hlo
