// sine, cosine and tan, with full reduction of the argument.
//
// x = q·π/2 + r with |r| <= π/4, r in two parts. Up to kReduceLimit, q·π/2 is subtracted in three parts by fma: the
// first difference is exact, the other two leave an error below the low part. Larger ones go another way, in
// double: x times those digits of 1/2π that matter. See reduce_huge().
#pragma once

#include "functions/double_word.h"
#include "functions/real.h"

namespace hloom::functions {

inline constexpr float kSinF32[] = {-0.16666655f, 0.008332188f, -0.00019518095f};
inline constexpr float kCosF32[] = {-0.5f, 0.041666646f, -0.001388731f, 2.4432327e-05f};
inline constexpr double kSinF64[] = {-0.1666666666666663,    0.008333333333321842,   -0.0001984126982936105,
                                     2.7557313539775928e-06, -2.505073465190754e-08, 1.5895452739038346e-10};
inline constexpr double kCosF64[] = {-0.5,
                                     0.041666666666666595,
                                     -0.0013888888888873325,
                                     2.480158728898371e-05,
                                     -2.755731421009299e-07,
                                     2.0875704274665924e-09,
                                     -1.135868357828725e-11};

/// x = q·π/2 + r + r_low; the low bits of q.bits are those of q.
template <class B, class T>
struct Quadrant {
  Value<B, UnsignedOf<T>> q;
  Value<B, T> r, r_low;
};

template <class T>
inline constexpr T kReduceLimit = sizeof(T) == 4 ? T(0x1p17) : T(0x1p20);

/// Needs: |x| <= kReduceLimit, or any bits come out.
template <class B, class T>
Quadrant<B, T> reduce_small(Value<B, T> x) {
  constexpr T kTwoOverPi = sizeof(T) == 4 ? T(0.63661975f) : T(0.6366197723675814);
  constexpr T kHigh = sizeof(T) == 4 ? T(1.5707964f) : T(1.5707963267948966);
  constexpr T kMiddle = sizeof(T) == 4 ? T(-4.371139e-08f) : T(6.123233995736766e-17);
  constexpr T kLow = sizeof(T) == 4 ? T(-1.7151245e-15f) : T(-1.4973849048591698e-33);
  const Rounded<B, T> q = round_product(x, kTwoOverPi);
  const Value<B, T> exact = fma(q.number, -kHigh, x);
  const Value<B, T> r = fma(q.number, -kMiddle, exact);
  // What rounding r lost. exact - r is itself rounded where r is much the smaller; then its error counts too.
  const Value<B, T> taken = exact - r;
  const Value<B, T> error = (exact - taken) - r;
  return {q.bits, r, fma(q.number, -kLow, fma(q.number, -kMiddle, taken) + error)};
}

/// sin and cos of r + r_low, for |r| <= π/4.
template <class B, class T>
Value<B, T> sine_of(const Quadrant<B, T>& x) {
  const Value<B, T> square = x.r * x.r;
  if constexpr (sizeof(T) == 4)
    return x.r + fma(x.r * square, polynomial(square, kSinF32), x.r_low);
  else
    return x.r + fma(x.r * square, polynomial(square, kSinF64), x.r_low);
}
template <class B, class T>
Value<B, T> cosine_of(const Quadrant<B, T>& x) {
  const Value<B, T> square = x.r * x.r;
  if constexpr (sizeof(T) == 4)
    return fma(x.r, fma(x.r, polynomial(square, kCosF32), -x.r_low), T{1});
  else
    return fma(x.r, fma(x.r, polynomial(square, kCosF64), -x.r_low), T{1});
}

/// sin(x + shift·π/2).
template <class B, class T>
Value<B, T> sine_in(const Quadrant<B, T>& x, int shift) {
  using Bits = UnsignedOf<T>;
  const auto q = x.q + static_cast<Bits>(shift);
  const auto odd = (q & Bits{1}) != q(0);
  const auto sign = (q & Bits{2}) << static_cast<Bits>(8 * sizeof(T) - 2);
  return bits_as<T>(bits(select(odd, cosine_of(x), sine_of(x))) ^ sign);
}
/// The quotient of both with what they and the division lost put back.
template <class B>
Value<B, double> tangent_in(const Quadrant<B, double>& x) {
  using V = Value<B, double>;
  const V square = x.r * x.r;
  const auto s = exact_sum_ordered(x.r, fma(x.r * square, polynomial(square, kSinF64), x.r_low));
  const V slope = fma(x.r, polynomial(square, kCosF64), -x.r_low);  // (cos - 1)/r
  const V c_high = fma(x.r, slope, 1.0);
  const DoubleWord<B, double> c{c_high, fma(x.r, slope, 1 - c_high)};
  const auto odd = (x.q & std::uint64_t{1}) != x.q(0);
  const V above = select(odd, -c.high, s.high), above_low = select(odd, -c.low, s.low);
  const V below = select(odd, s.high, c.high), below_low = select(odd, s.low, c.low);
  const V inverse = 1 / below;
  const V quotient = above * inverse;
  const V left = fma(-quotient, below, above) + fma(-quotient, below_low, above_low);
  return fma(left, inverse, quotient);
}

}  // namespace hloom::functions
