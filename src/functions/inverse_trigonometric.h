// asin, acos, atan and atan2, of doubles.
#pragma once

#include "functions/real.h"

namespace hloom::functions {

/// (asin(x) - x)/x^3 in x^2, to 1/2. tools/fit_polynomial.py asin.
inline constexpr double kAsin[] = {0.16666666666665375,  0.07500000000344928,   0.04464285682187983,
                                   0.030381959399209253, 0.022371751851853233,  0.017359796909781896,
                                   0.013884338007529992, 0.012175024567250368,  0.006503159656450711,
                                   0.01959534416837313,  -0.016328293598878725, 0.0319828053929215};
/// (atan(x) - x)/x^3 in x^2, to tan(π/8). tools/fit_polynomial.py atan.
inline constexpr double kAtan[] = {-0.333333333333332,   0.19999999999953816,  -0.1428571428022011,
                                   0.11111110784650281,  -0.09090897791960093, 0.07692060818393553,
                                   -0.06663110794323741, 0.058479372435639915, -0.05039514628669428,
                                   0.03806972559955074,  -0.017912672129853317};
inline constexpr double kQuarterPi = 0.7853981633974483, kQuarterPiLow = 3.061616997868383e-17;

/// asin(t) for t up to 1/2 in size, where t is |x|, or √((1 - |x|)/2) for |x| above 1/2.
template <class B>
struct HalfAngle {
  Value<B, bool> far;  ///< |x| > 1/2: asin |x| = π/2 - 2·asin t
  Value<B, double> t;
  Value<B, double> tail;  ///< asin t - t
};
template <class B>
HalfAngle<B> half_angle(Value<B, double> x) {
  using V = Value<B, double>;
  const V a = abs(x);
  const auto far = a > 0.5;
  const V square = select(far, fma(a, -0.5, 0.5), a * a);  // NaN's way out for |x| > 1 is the root
  const V t = select(far, sqrt(square), a);
  return {far, t, t * square * polynomial(square, kAsin)};
}

template <class B>
Value<B, double> inverse_sine(Value<B, double> x) {
  using V = Value<B, double>;
  const auto h = half_angle(x);
  const V near = h.t + h.tail;
  const V far = 2 * kQuarterPi - (2.0 * h.t + (2.0 * h.tail - 2 * kQuarterPiLow));
  return with_sign(abs(select(h.far, far, near)), x);
}

template <class B>
Value<B, double> inverse_cosine(Value<B, double> x) {
  using V = Value<B, double>;
  const auto h = half_angle(x);
  const auto negative = x < 0;
  // Near 0: π/2 ∓ asin t. Far: 2·asin t, or π - 2·asin t.
  const V t = select(negative, -h.t, h.t), tail = select(negative, -h.tail, h.tail);
  const V near = 2 * kQuarterPi - (t + (tail - 2 * kQuarterPiLow));
  const V base = select(negative, 4 * kQuarterPi, x(0)), base_low = select(negative, 4 * kQuarterPiLow, x(0));
  const V far = base + (2.0 * t + fma(tail, 2.0, base_low));
  return select(h.far, far, near);
}

/// The angle of the point (x, y), both not NaN, in the first quadrant's mirror images: C99's atan2.
///
/// With a <= b the sizes of both, atan(a/b) is atan t, or π/4 + atan t with t = (a - b)/(a + b) where a/b exceeds
/// tan(π/8). It is mirrored at π/4 where y is larger, and at π/2 for negative x: k·π/4 ± atan t in all.
template <class B>
Value<B, double> angle(Value<B, double> y, Value<B, double> x) {
  using V = Value<B, double>;
  const V ax = abs(x), ay = abs(y);
  const auto steep = ay > ax;
  const V small = select(steep, ax, ay), large = select(steep, ay, ax);
  // Sums must not overflow, nor infinities or zeros meet. Powers of two change no quotient.
  const auto both_infinite = small == small(kInfinity<double>);
  const V down = select(large > 0x1p1000, 0x1p-4, x(1));
  const V a = select(both_infinite, 1.0, small * down);
  const V b = select(both_infinite | (large == large(0)), 1.0, large * down);
  const auto middle = a > 0.41421356237309503 * b;
  const V t = select(middle, a - b, a) / select(middle, a + b, b);
  // k and the direction.
  const auto left = sign_bit(x) != 0u;
  V k = select(middle, 1.0, x(0));
  V direction = x(1);
  k = select(steep, 2.0 - k, k);
  direction = select(steep, -direction, direction);
  k = select(left, 4.0 - k, k);
  direction = select(left, -direction, direction);

  const V u = direction * t;
  const V square = t * t;
  const V high = k * kQuarterPi;
  const V low = fma(k, kQuarterPi, -high) + k * kQuarterPiLow;
  return with_sign(abs(high + (u + fma(u * square, polynomial(square, kAtan), low))), y);
}

template <class B>
Value<B, double> arc_tangent2(Value<B, double> y, Value<B, double> x) {
  return select(is_nan(x) | is_nan(y), kNaN<double>, angle(y, x));
}
template <class B>
Value<B, double> inverse_tangent(Value<B, double> x) {
  return select(is_nan(x), x, angle(x, x(1)));
}

}  // namespace hloom::functions
