// Roots: rsqrt and cbrt. (sqrt is an operation of the builders.)
#pragma once

#include "functions/double_word.h"
#include "functions/real.h"

namespace hloom::functions {

/// 1/√x: two operations, and a step of Newton's for what their roundings lost, y + y·(1 - x·y²)/2.
template <class B, class T>
Value<B, T> reciprocal_sqrt(Value<B, T> x) {
  using V = Value<B, T>;
  const V y = T{1} / sqrt(x);
  const auto root = exact_product(x, y);
  const V left = fma(-root.low, y, fma(-root.high, y, T{1}));
  const auto ordinary = (x > 0) & (x < kInfinity<T>);
  return select(ordinary, fma(y * T{0.5}, left, y), y);
}

/// r^(-1/3) for r in [0.9097, 1.0993]. tools/fit_polynomial.py cbrt.
inline constexpr double kCubeRoot[] = {1.8725729182948603, -1.8716084900465453, 1.6016140869178814, -0.7453641598335926,
                                       0.1427856337974863};

/// The real cube root. A third of the upper half of the bits is a guess to 3 %, by which the polynomial makes 24 bits,
/// of which 23 are kept so that their square is exact, and a step of Newton's makes the rest.
template <class B>
Value<B, double> cube_root(Value<B, double> x) {
  using V = Value<B, double>;
  constexpr std::uint64_t kThirdOfTwo32 = 0x55555556, kGuess = 715094164;
  const V a = abs(x);
  const auto denormal = a < std::numeric_limits<double>::min();
  const V normal = select(denormal, a * 0x1p54, a);
  const auto third = ((bits(normal) >> 32) * kThirdOfTwo32) >> 32;
  const V guess = bits_as<double>((third + kGuess) << 32);
  const V good = guess * polynomial(guess * guess * (guess / normal), kCubeRoot);
  const V t = bits_as<double>((bits(good) + 0x20000000u) & ~std::uint64_t{0x3FFFFFFF});
  const V r = normal / (t * t);
  const V root = fma(t, (r - t) / (t + t + r), t);
  const V result = root * select(denormal, 0x1p-18, x(1));
  const auto ordinary = (a > 0) & (a < kInfinity<double>);
  return with_sign(select(ordinary, result, a), x);
}

}  // namespace hloom::functions
