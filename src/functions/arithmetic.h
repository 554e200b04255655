// Maximum, minimum, clamp, sign, rounding: what is exact.
#pragma once

#include "functions/real.h"

namespace hloom::functions {

/// IEEE 754-2019's maximum: a NaN wins, the left one first; +0 is above -0.
template <class B, class T>
Value<B, T> maximum(Value<B, T> x, Value<B, T> y) {
  if constexpr (!is_real<T>) {
    return select(x < y, y, x);
  } else {
    // Equal numbers differ by the sign of a zero at most, which `and` clears unless both have it.
    const auto equal = bits_as<T>(bits(x) & bits(y));
    const Value<B, T> larger_one = select(x > y, x, select(x == y, equal, y));
    return select(is_nan(x), x, larger_one);
  }
}
/// IEEE 754-2019's minimum.
template <class B, class T>
Value<B, T> minimum(Value<B, T> x, Value<B, T> y) {
  if constexpr (!is_real<T>) {
    return select(y < x, y, x);
  } else {
    const auto equal = bits_as<T>(bits(x) | bits(y));
    const Value<B, T> smaller_one = select(x < y, x, select(x == y, equal, y));
    return select(is_nan(x), x, smaller_one);
  }
}

/// minimum(maximum(x, low), high); of NaNs the first of low, x, high.
template <class B, class T>
Value<B, T> clamp(Value<B, T> low, Value<B, T> x, Value<B, T> high) {
  return minimum(maximum(low, x), high);
}

/// -1, 0 or 1; zeros and NaNs stay.
template <class B, class T>
Value<B, T> sign(Value<B, T> x) {
  if constexpr (is_real<T>) {
    const Value<B, T> one = with_sign(x(T{1}), x);
    return select(x < 0, one, select(x > 0, one, x));
  } else if constexpr (std::is_signed_v<T>) {
    return select(x < T{0}, static_cast<T>(-1), select(x > T{0}, T{1}, x));
  } else {
    return select(x > T{0}, T{1}, x);
  }
}

/// To the nearest whole number, halves away from zero.
template <class B, class T>
  requires is_real<T>
Value<B, T> round_away(Value<B, T> x) {
  const Value<B, T> a = abs(x);
  const Value<B, T> down = trunc(a);
  // a - down is exact, so 0.49999997 does not become a half.
  const Value<B, T> result = down + select(a - down >= T(0.5), T{1}, x(0));
  return with_sign(select(a < kInfinity<T>, result, a), x);
}

template <class B, class T>
  requires is_real<T>
Value<B, bool> is_finite(Value<B, T> x) {
  return abs(x) < kInfinity<T>;
}

/// C's fmod: exact, with the sign of x; NaN for a zero y, an infinite x, a NaN.
///
/// x is taken down by multiples of y·2^k, k such that the quotient is below 2^kStep, in which a truncated quotient is
/// at most one too large and x - q·y·2^k fits a double. One step does unless x/y exceeds 2^kStep.
template <class B>
Value<B, double> remainder(Value<B, double> x, Value<B, double> y) {
  using V = Value<B, double>;
  using Word = Value<B, std::uint64_t>;
  constexpr std::uint64_t kStep = 48;
  const V ax = abs(x), ay = abs(y);
  // The exponent of a value, for denormals too: 2^(exponent - 1023 - 64).
  const auto exponent = [](V v) {
    const auto small = v < 0x1p-900;
    const Word field = bits(select(small, v * 0x1p64, v)) >> 52;
    return field + select(small, std::uint64_t{0}, field(64));
  };
  const Word y_exponent = exponent(ay);
  const auto step = [&](V r) {
    const Word gap = exponent(r) - y_exponent;  // at least 0 where r >= y
    const Word shift = select(gap < kStep + 1, std::uint64_t{0}, gap - kStep);
    // 2^shift may be as large as 2^2049: four factors.
    const Word quarter = shift >> 2;
    const auto power = [](Word n) { return bits_as<double>((n + 1023u) << 52); };
    const V factor = power(quarter);
    const V scaled = ay * factor * factor * factor * power(shift - quarter * 3u);
    const V left = fma(-trunc(r / scaled), scaled, r);
    return select(left < 0, left + scaled, left);
  };
  const auto going_on = [&](V r) { return (r >= ay) & (ay > 0) & (r < kInfinity<double>); };
  const V result = repeat_while(ax, going_on, step);
  // NaN where an operand is one, or y is 0 or x infinite.
  const auto good = (ax < kInfinity<double>)&(ay > 0);
  return with_sign(select(good, result, kNaN<double>), x);
}

/// Every float is a normal double, and the remainder of two floats is a float.
template <class B>
Value<B, float> remainder(Value<B, float> x, Value<B, float> y) {
  return to_real<float>(remainder(to_real<double>(x), to_real<double>(y)));
}

}  // namespace hloom::functions
