// log and log-plus-one, and what is made of them: asinh, acosh, atanh.
//
// Both write their argument as 2^e·(1 + f) with 1 + f in [√½, √2). For log, f is exact. For log-plus-one, 1 + x
// is rounded, and what that lost is added to f. The rest is shared: e·ln 2 + log(1 + f), the first in two
// parts of which e·kLn2 is added last.
#pragma once

#include "functions/double_word.h"
#include "functions/real.h"

namespace hloom::functions {

/// (log(1 + f) - f + f^2/2)/f^3. tools/fit_polynomial.py log_f32.
inline constexpr float kLogF32[] = {0.3333333f,  -0.25000823f, 0.20001231f, -0.16623361f,
                                    0.14201775f, -0.13160187f, 0.12761423f, -0.07634278f};
/// (log((1 + s)/(1 - s)) - 2s)/s^3 in s^2. tools/fit_polynomial.py log_f64.
inline constexpr double kLogF64[] = {0.6666666666666735,  0.3999999999940935,  0.2857142874368678, 0.22222198428917123,
                                     0.18183572359641553, 0.15313832004179975, 0.14798260819052786};

/// x = 2^e·(1 + f).
template <class B, class T>
struct LogarithmParts {
  Value<B, T> e;
  Value<B, T> f;
  Value<B, T> inverse_scale;  ///< 2^-e, for e < bias
};

/// Needs: x positive and finite; else e and f are some numbers.
template <class B, class T>
LogarithmParts<B, T> split_logarithm(Value<B, T> x) {
  using R = Real<T>;
  using Bits = typename R::Bits;
  constexpr Bits kShift = R::kMantissaBits;
  constexpr Bits kRootHalf = sizeof(T) == 4 ? Bits(0x3F3504F3) : Bits(0x3FE6A09E667F3BCD);
  constexpr T kUp = sizeof(T) == 4 ? T(0x1p24) : T(0x1p54);
  constexpr T kUpExponent = sizeof(T) == 4 ? T(24) : T(54);
  // The exponent field is read as the low bits of 2^mantissa_bits + field.
  constexpr Bits kPlainBits = (R::kBias + kShift) << kShift;
  constexpr T kPlain = T(Bits{1} << kShift) + T(R::kBias);

  const Value<B, bool> denormal = x < std::numeric_limits<T>::min();
  const auto normal = bits(select(denormal, x * kUp, x));
  const auto shifted = normal + (R::kOne - kRootHalf);
  const auto field = bits_as<T>((shifted >> kShift) | kPlainBits);
  const auto mantissa = (shifted & ((Bits{1} << kShift) - 1)) + kRootHalf;
  return {field - select(denormal, kPlain + kUpExponent, x(kPlain)), bits_as<T>(mantissa) - 1,
          bits_as<T>(mantissa - normal + R::kOne)};
}

/// e·ln 2 + log(1 + f) for floats.
template <class B>
Value<B, float> logarithm_of(Value<B, float> e, Value<B, float> f) {
  using V = Value<B, float>;
  const V square = f * f;
  const V low = fma(e, Real<float>::kLn2Low, square * f * polynomial(f, kLogF32));
  return fma(e, Real<float>::kLn2, f + fma(square, -0.5f, low));
}

/// The same for doubles: with s = f/(2 + f), log(1 + f) = f - (f^2/2 - s·(f^2/2 + s^2·q(s^2))).
template <class B>
Value<B, double> logarithm_of(Value<B, double> e, Value<B, double> f) {
  using V = Value<B, double>;
  const V s = f / (f + 2);
  const V z = s * s;
  const V half = 0.5 * f * f;
  const V tail = fma(s, fma(z, polynomial(z, kLogF64), half), e * Real<double>::kLn2Low);
  return fma(e, Real<double>::kLn2, f - (half - tail));
}

/// The natural logarithm.
template <class B, class T>
Value<B, T> logarithm(Value<B, T> x) {
  const auto parts = split_logarithm(x);
  const Value<B, T> result = select(x < kInfinity<T>, logarithm_of(parts.e, parts.f), x);
  return select(x > 0, result, select(x == x(0), -kInfinity<T>, x(kNaN<T>)));
}

/// log(1 + x + x_low). Needs: x_low small against 1 + x.
template <class B, class T>
Value<B, T> log_plus_one(Value<B, T> x, Value<B, T> x_low) {
  using V = Value<B, T>;
  constexpr T kTiny = sizeof(T) == 4 ? T(0x1p-25) : T(0x1p-54);
  constexpr T kHuge = sizeof(T) == 4 ? T(0x1p30) : T(0x1p60);
  const V y = 1 + x;
  const auto parts = split_logarithm(y);
  const V lost = select(x < 1, x - (y - 1), 1 - (y - x)) + x_low;
  const V f = parts.f + select(x < kHuge, lost * parts.inverse_scale, T{0});
  const V result = select(x < kInfinity<T>, logarithm_of(parts.e, f), x);
  const V inside = select(x > -1, result, select(x == x(-1), -kInfinity<T>, x(kNaN<T>)));
  return select(abs(x) < kTiny, x, inside);
}
template <class B, class T>
Value<B, T> log_plus_one(Value<B, T> x) {
  return log_plus_one(x, x(T{0}));
}

/// asinh: log(1 + (a + a^2/(1 + √(a^2 + 1)))), a = |x|; log(2a) for large ones.
template <class B>
Value<B, double> inverse_sinh(Value<B, double> x) {
  using V = Value<B, double>;
  const V a = abs(x);
  const Value<B, bool> large = a > 0x1p60;
  const V square = a * a;
  const V inner = select(large, a, a + square / (1 + sqrt(square + 1)));
  const V result = log_plus_one(inner) + select(large, Real<double>::kLn2, x(0));
  return with_sign(result, x);
}

/// acosh: log(1 + (t + √(t·(t + 2)))), t = x - 1, the sum to twice the bits; log(2x) for large ones.
template <class B>
Value<B, double> inverse_cosh(Value<B, double> x) {
  using V = Value<B, double>;
  const Value<B, bool> large = x > 0x1p60;
  const V t = x - 1;
  const auto square = exact_product(t, t + 2);
  const V root = sqrt(square.high);
  const V root_low = select(t > 0, 0.5 * (fma(-root, root, square.high) + square.low) / root, x(0));
  const auto inner = exact_sum_ordered(root, t);
  const V result = log_plus_one(select(large, x, inner.high), select(large, 0.0, inner.low + root_low));
  return select(x < 1, kNaN<double>, result + select(large, Real<double>::kLn2, x(0)));
}

/// atanh: log(1 + 2a/(1 - a))/2, a = |x|.
template <class B>
Value<B, double> inverse_tanh(Value<B, double> x) {
  const Value<B, double> a = abs(x);
  return with_sign(0.5 * log_plus_one((a + a) / (1 - a)), x);
}

}  // namespace hloom::functions
