// e^x and what is made of it: exponential-minus-one, logistic, tanh, sinh, cosh.
//
// All split x = n·ln 2 + r with |r| <= ln 2 / 2, so that e^x = 2^n·e^r, and take e^r - 1 from one polynomial. r is
// nearly exact: n·kLn2 is subtracted by fma without an error (the difference has the last place of kLn2 and is
// below 1/2), and kLn2Low costs one rounding.
#pragma once

#include "functions/double_word.h"
#include "functions/real.h"

namespace hloom::functions {

/// (e^r - 1 - r)/r^2. tools/fit_polynomial.py expm1_f32, expm1_f64.
inline constexpr float kExpF32[] = {0.5f, 0.16666666f, 0.04166648f, 0.00833342f, 0.001393342f, 0.00019824073f};
inline constexpr double kExpF64[] = {0.5,
                                     0.16666666666666677,
                                     0.04166666666666657,
                                     0.008333333333321988,
                                     0.0013888888888944253,
                                     0.000198412698854437,
                                     2.480158719688892e-05,
                                     2.755724473226305e-06,
                                     2.755738762069784e-07,
                                     2.5108901332003294e-08,
                                     2.08789020238436e-09};

/// x = n·ln 2 + r + r_low.
template <class B, class T>
struct ExponentialParts {
  Rounded<B, T> n;
  Value<B, T> r;
  Value<B, T> before;  ///< r before kLn2Low was taken off

  /// What rounding r lost.
  Value<B, T> r_low() const { return fma(n.number, -Real<T>::kLn2Low, before - r); }
  /// (e^r - 1 - r)/r^2.
  Value<B, T> quotient() const {
    if constexpr (sizeof(T) == 4)
      return polynomial(r, kExpF32);
    else
      return polynomial(r, kExpF64);
  }
  /// e^r - 1 - r.
  Value<B, T> tail() const { return r * r * quotient(); }
  /// e^x = 2^n·(high + low), all but what the polynomial lacks.
  DoubleWord<B, T> mantissa() const {
    const Value<B, T> minus_one = r + (tail() + r_low());
    return exact_sum_ordered(r(T{1}), minus_one);
  }
  /// e^x, rounded twice: in r and at the end.
  Value<B, T> whole() const { return scale(fma(fma(quotient(), r, T{1}), r, T{1}), n); }
};

template <class B, class T>
ExponentialParts<B, T> split_exponent(Value<B, T> x) {
  const Rounded<B, T> n = round_product(x, Real<T>::kLog2e);
  const Value<B, T> before = fma(n.number, -Real<T>::kLn2, x);
  return {n, fma(n.number, -Real<T>::kLn2Low, before), before};
}

// Beyond these e^x rounds to 0, or is infinite.
template <class T>
inline constexpr T kExpLow = sizeof(T) == 4 ? T(-104) : T(-746);
template <class T>
inline constexpr T kExpHigh = sizeof(T) == 4 ? T(89) : T(710);

/// e^x.
template <class B, class T>
Value<B, T> exponential(Value<B, T> x) {
  const auto parts = split_exponent(larger(kExpLow<T>, smaller(kExpHigh<T>, x)));
  return parts.whole();
}

/// 1/(1 + e^-x) as e^min(x,0)/(1 + e^-|x|), so that nothing overflows and small results keep their digits.
template <class B, class T>
Value<B, T> logistic(Value<B, T> x) {
  using V = Value<B, T>;
  const auto parts = split_exponent(larger(kExpLow<T>, -abs(x)));
  const auto m = parts.mantissa();
  const DoubleWord<B, T> e{scale(m.high, parts.n), scale(m.low, parts.n)};
  const DoubleWord<B, T> sum = exact_sum_ordered(x(T{1}), e.high);
  const auto negative = x < 0;
  const V above = select(negative, e.high, T{1}), above_low = select(negative, e.low, T{0});
  const V quotient = above / sum.high;
  // What the division and the parts below left. 1/sum is the quotient, or 1 less it.
  const V left = fma(-quotient, sum.high, above) + fma(-quotient, sum.low + e.low, above_low);
  return fma(left, select(negative, 1 - quotient, quotient), quotient);
}

/// e^x - 1. With s = 2^(n-1): 2·(s·(e^r - 1) + (s - 1/2)), where s - 1/2 is exact or of no weight.
template <class B, class T>
Value<B, T> exponential_minus_one(Value<B, T> x) {
  constexpr T kLow = sizeof(T) == 4 ? T(-17.5) : T(-38);  // from there the result is -1
  constexpr T kTiny = sizeof(T) == 4 ? T(0x1p-25) : T(0x1p-54);
  const auto parts = split_exponent(larger(kLow, smaller(kExpHigh<T>, x)));
  const Value<B, T> s = power_of_two(parts.n, -1);
  const Value<B, T> whole = fma(s, parts.r, s - T(0.5));
  const Value<B, T> half = fma(s, parts.tail() + parts.r_low(), whole);
  return select(abs(x) < kTiny, x, half + half);
}

/// (tanh(x) - x)/x^3 in x^2, for |x| <= 0.5626. tools/fit_polynomial.py tanh_f32.
inline constexpr float kTanhF32[] = {-0.33333313f, 0.13332437f, -0.053835757f, 0.021000542f, -0.0061702183f};

/// tanh of a float: an odd polynomial up to 0.55, 1 - 2/(e^2|x| + 1) beyond, where that is above 1/2. What the sum, the
/// division and the difference lose is put back.
template <class B>
Value<B, float> tanh(Value<B, float> x) {
  using V = Value<B, float>;
  const V a = smaller(9.1f, abs(x));  // from there the result is 1
  const auto parts = split_exponent(a + a);
  const V s = power_of_two(parts.n);
  const V minus_one = parts.r + parts.tail(), s_and_one = s + 1.0f;
  const V sum = fma(s, minus_one, s_and_one);
  const V sum_low = fma(s, minus_one, s_and_one - sum);
  const V quotient = 2.0f / sum;
  const V left = fma(-quotient, sum, 2.0f) - quotient * sum_low;  // of 2, so that left/sum is left·quotient/2
  const auto difference = exact_sum_ordered(x(1.0f), -quotient);
  const V large = difference.high + fma(left * quotient, -0.5f, difference.low);
  const V square = a * a;
  const V small = fma(a * square, polynomial(square, kTanhF32), a);
  return with_sign(select(a < 0.55f, small, large), x);
}

/// tanh of a double: with t = e^2|x| - 1, t/(t + 2) for small ones, else 1 - 2/(t + 2), and what the sum, the division
/// and the difference lose.
template <class B>
Value<B, double> tanh(Value<B, double> x) {
  using V = Value<B, double>;
  const V a = smaller(22.0, abs(x));  // from there the result is 1
  const V t = exponential_minus_one(a + a);
  const auto small = a < 0.55;
  const auto sum = exact_sum(t, x(2));
  const V above = select(small, t, x(2));
  const V quotient = above / sum.high;
  const V left = fma(-quotient, sum.high, above) - quotient * sum.low;
  const V rest = left * select(small, fma(quotient, -0.5, 0.5), 0.5 * quotient);  // left/sum
  const auto difference = exact_sum_ordered(x(1), -quotient);
  return with_sign(select(small, quotient + rest, difference.high + (difference.low - rest)), x);
}

/// sinh and cosh of x over 2^n.
template <class B>
struct HyperbolicParts {
  Value<B, double> sinh, cosh;
  Rounded<B, double> n;
};
/// With d = 1 - e^-r and w = 2^-2n: ((1 ± w) + ((e^r - 1) ∓ w·d))/2. Needs: |x| <= 1400, or NaN.
template <class B>
HyperbolicParts<B> hyperbolic_parts(Value<B, double> x) {
  using V = Value<B, double>;
  const auto parts = split_exponent(abs(x));
  const V p = parts.r + (parts.tail() + parts.r_low());
  const auto sum = exact_sum_ordered(p(1), p);  // e^r, so that d is p over it
  const V quotient = p / sum.high;
  const V left = fma(-quotient, sum.high, p) - quotient * sum.low;
  const V d = fma(left, 1 - quotient, quotient);
  // Beyond n = 60, w counts nothing.
  const V few = smaller(60.0, parts.n.number);
  const V w = power_of_two(round_product(few, -2.0));
  const V sinh = 0.5 * ((1 - w) + fma(w, d, p));
  const V cosh = 0.5 * ((1 + w) + fma(-w, d, p));
  return {with_sign(abs(select(abs(x) < 0x1p-28, abs(x), sinh)), x), cosh, parts.n};
}

template <class B>
struct Hyperbolic {
  Value<B, double> sinh, cosh;
};
/// sinh and cosh.
template <class B>
Hyperbolic<B> hyperbolic(Value<B, double> x) {
  const auto parts = hyperbolic_parts(larger(-1400.0, smaller(1400.0, x)));
  return {scale(parts.sinh, parts.n), scale(parts.cosh, parts.n)};
}

}  // namespace hloom::functions
