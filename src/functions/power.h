// x^y with C's special values.
#pragma once

#include "functions/double_word.h"
#include "functions/exponential.h"
#include "functions/logarithm.h"

namespace hloom::functions {

/// What C's pow() says about signs and special operands, given `magnitude` = |x|^y as the formula gives it.
template <class B, class T>
Value<B, T> with_power_rules(Value<B, T> x, Value<B, T> y, Value<B, T> magnitude) {
  using V = Value<B, T>;
  const V ax = abs(x);
  const V half = y * T(0.5);
  const auto whole = trunc(y) == y;
  const auto odd = whole & (trunc(half) != half);
  // |x| = 1 gives 1 even for an infinite or NaN y; but -1 to a NaN is not whole, hence a NaN below.
  const V size = select(ax == x(1), T{1}, magnitude);
  const V signed_size = select(odd, with_sign(size, x), size);
  const auto outside = (x < 0) & (ax < kInfinity<T>)&!whole;
  return select((y == y(0)) | (x == x(1)), T{1}, select(outside, kNaN<T>, signed_size));
}

/// log2((1 + s)/(1 - s))/s in s^2, and 2^r for |r| <= 1/2. tools/fit_polynomial.py log2_power, exp2_power.
inline constexpr double kLog2Power[] = {2.885390081777927,  0.961796693924408,   0.5770780172293619, 0.4121984037006674,
                                        0.3206163117499853, 0.26144588268727564, 0.24290344167170763};
inline constexpr double kExp2Power[] = {0.9999999999591616,     0.6931471807198885,    0.24022651198562336,
                                        0.055504103533709374,   0.009618027160139228,  0.0013333923046851513,
                                        0.00015469318451709807, 1.5201853593385833e-05};

/// x^y of floats, as 2^(y·log2 |x|) in double.
template <class B>
Value<B, float> power(Value<B, float> x, Value<B, float> y) {
  using V = Value<B, double>;
  const V base = to_real<double>(abs(x));
  const auto parts = split_logarithm(base);
  const V s = parts.f / (parts.f + 2);
  const V finite_log = fma(s, polynomial(s * s, kLog2Power), parts.e);
  const V log = select(base > 0, select(base < kInfinity<double>, finite_log, base),
                       select(base == base(0), -kInfinity<double>, base));
  // Far enough for 0 and infinity, near enough for the exponent of a double.
  const V exponent = larger(-200.0, smaller(200.0, log * to_real<double>(y)));
  const auto n = round_product(exponent, 1.0);
  const V magnitude = polynomial(exponent - n.number, kExp2Power) * power_of_two(n);
  return with_power_rules(x, y, to_real<float>(magnitude));
}

/// (log((1 + s)/(1 - s)) - 2s - 2/3·s^3)/s^5 in s^2. tools/fit_polynomial.py log_power.
inline constexpr double kLogPower[] = {0.3999999999999998,  0.2857142857144387, 0.22222222217778614,
                                       0.18181818845733128, 0.1538455829092063, 0.13336270352953442,
                                       0.11675652855736672, 0.11982879531729757};

/// log x to about 66 bits, as log_plus_one's sibling for doubles, of s = f/(2 + f) in two words.
/// Needs: x positive and finite.
template <class B>
DoubleWord<B, double> long_logarithm(Value<B, double> x) {
  using V = Value<B, double>;
  using Long = DoubleWord<B, double>;
  constexpr double kThirds = 0.6666666666666666, kThirdsLow = 3.700743415417188e-17;
  constexpr double kLn2Short = 0x1.62e42fefa38p-1, kLn2Rest = 5.497923018708371e-14;  // e·kLn2Short is exact
  const auto parts = split_logarithm(x);
  const V f = parts.f;
  const V denominator = f + 2;
  const V denominator_low = f - (denominator - 2);
  const V quotient = f / denominator;
  const Long s{quotient, (fma(-quotient, denominator, f) - quotient * denominator_low) / denominator};
  const Long z = s * s;
  // 2/3 + z·q(z); z·q(z) is below 2^-5 of it, so one word does.
  const Long inner = exact_sum_ordered(f(kThirds), z.high * polynomial(z.high, kLogPower));
  const Long tail = s * z * Long{inner.high, inner.low + kThirdsLow};
  const Long mantissa = add_ordered({s.high + s.high, s.low + s.low}, tail);
  return add_ordered({parts.e * kLn2Short, parts.e * kLn2Rest}, mantissa);
}

/// x^y of doubles.
template <class B>
Value<B, double> power(Value<B, double> x, Value<B, double> y) {
  using V = Value<B, double>;
  const V base = abs(x);
  const auto log = long_logarithm(base);
  const auto ordinary = (base > 0) & (base < kInfinity<double>);
  const V high = select(ordinary, log.high, select(base == base(0), -kInfinity<double>, base));
  // No |log| but 0 is below 2^-54, so a larger |y| changes nothing, and products stay finite.
  const V bounded = larger(-0x1p66, smaller(0x1p66, y));
  const V product = high * bounded;
  const V low = fma(high, bounded, -product) + log.low * bounded;
  const V exponent = larger(kExpLow<double>, smaller(kExpHigh<double>, product));
  const V rest = select(exponent == product, low, 0.0);  // what is clamped is 0 or infinite
  const auto parts = split_exponent(exponent);
  // e^(r + c) = e^r + c·e^r; c may have 2^-43.
  const V c = parts.r_low() + rest;
  const V tail = parts.tail();
  const V magnitude = scale(1 + (parts.r + (tail + fma(c, parts.r + tail, c))), parts.n);
  return with_power_rules(x, y, magnitude);
}

}  // namespace hloom::functions
