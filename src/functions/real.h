// What the bodies need to know of float and double.
#pragma once

#include <cstdint>
#include <limits>

#include "functions/value.h"

namespace hloom::functions {

template <class T>
struct Real;

template <>
struct Real<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr Bits kOne = 0x3F800000;
  static constexpr float kRound = 0x1.8p23f;  ///< x + kRound has round_even(x) in its low bits, for |x| < 2^22
  static constexpr float kLog2e = 1.442695f;
  static constexpr float kLn2 = 0.6931472f, kLn2Low = -1.9046542e-09f;  ///< their sum is ln 2
};

template <>
struct Real<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr Bits kOne = 0x3FF0000000000000;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLog2e = 1.4426950408889634;
  static constexpr double kLn2 = 0.6931471805599453, kLn2Low = 2.3190468138462996e-17;
};

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

/// A float bent to an integer n: as a float, and as bits whose low half holds n.
template <class B, class T>
struct Rounded {
  Value<B, T> number;
  Value<B, UnsignedOf<T>> bits;
};

/// round_even(x·factor). Needs: |x·factor| below a quarter of 2^mantissa; a NaN gives a NaN and any bits.
template <class B, class T>
Rounded<B, T> round_product(Value<B, T> x, std::type_identity_t<T> factor) {
  const Value<B, T> shifted = fma(x, factor, Real<T>::kRound);
  return {shifted - Real<T>::kRound, bits(shifted)};
}

/// x·2^n, rounded once, for x in [1/2, 4] and any n from -2·bias to 2·bias.
template <class B, class T>
Value<B, T> scale(Value<B, T> x, Rounded<B, T> n) {
  using R = Real<T>;
  constexpr typename R::Bits kShift = R::kMantissaBits;
  // Two steps of half the exponent, so that only the second can leave the normal range. The bits of kRound
  // vanish at the top.
  const auto half = n.bits >> static_cast<typename R::Bits>(1);
  const auto rest = n.bits - half;
  return (x * bits_as<T>((half << kShift) + R::kOne)) * bits_as<T>((rest << kShift) + R::kOne);
}

/// 2^(n + offset). Needs: n + offset from 1 - bias to bias.
template <class B, class T>
Value<B, T> power_of_two(Rounded<B, T> n, int offset = 0) {
  using R = Real<T>;
  const auto one = static_cast<typename R::Bits>(R::kBias + offset) << R::kMantissaBits;
  return bits_as<T>((n.bits << static_cast<typename R::Bits>(R::kMantissaBits)) + one);
}

}  // namespace hloom::functions
