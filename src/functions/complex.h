// Complex numbers: arithmetic, absolute value, roots, logarithms and exponentials. All in doubles; c64 comes here
// by exact widening and is rounded once, but for +, - and ·, which have float bodies too.
//
// Special values follow annex G of C99. Scaling is by powers of two throughout, so it costs no digits.
#pragma once

#include "functions/arithmetic.h"
#include "functions/exponential.h"
#include "functions/huge_angle.h"
#include "functions/inverse_trigonometric.h"
#include "functions/logarithm.h"
#include "functions/roots.h"

namespace hloom::functions {

template <class B, class T = double>
struct Complex {
  Value<B, T> re, im;
};

template <class B, class T>
Complex<B, T> operator+(const Complex<B, T>& x, const Complex<B, T>& y) {
  return {x.re + y.re, x.im + y.im};
}
template <class B, class T>
Complex<B, T> operator-(const Complex<B, T>& x, const Complex<B, T>& y) {
  return {x.re - y.re, x.im - y.im};
}
/// The usual formula: each product and sum rounded.
template <class B, class T>
Complex<B, T> operator*(const Complex<B, T>& x, const Complex<B, T>& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class B, class T>
Complex<B, T> operator-(const Complex<B, T>& x) {
  return {-x.re, -x.im};
}
template <class B>
Complex<B> operator*(const Complex<B>& x, Value<B, double> y) {
  return {x.re * y, x.im * y};
}
template <class B, class T>
Complex<B, T> conjugate(const Complex<B, T>& x) {
  return {x.re, -x.im};
}
template <class B>
Complex<B> times_i(const Complex<B>& x) {
  return {-x.im, x.re};
}
template <class B>
Complex<B> times_minus_i(const Complex<B>& x) {
  return {x.im, -x.re};
}
template <class B>
Complex<B> select(Value<B, bool> condition, const Complex<B>& yes, const Complex<B>& no) {
  return {select(condition, yes.re, no.re), select(condition, yes.im, no.im)};
}
template <class B>
Value<B, bool> is_infinite(Value<B, double> x) {
  return abs(x) == x(kInfinity<double>);
}
template <class B>
Value<B, bool> is_infinite(const Complex<B>& x) {
  return is_infinite(x.re) | is_infinite(x.im);
}
template <class B>
Value<B, bool> is_finite(const Complex<B>& x) {
  return is_finite(x.re) & is_finite(x.im);
}

/// x = y·2^exponent with y's larger part in [1, 4), or that of a denormal x at least 2^-52. An infinite or zero x
/// stays so.
template <class B>
struct Scaled {
  Complex<B> y;
  Value<B, double> up;  ///< 2^exponent
  Value<B, double> exponent;
};
template <class B>
Scaled<B> scaled(const Complex<B>& x) {
  const auto larger_part = maximum(abs(x.re), abs(x.im));
  const auto field = bits(larger_part) >> 52u;
  // From 1 to 2045, so that 2^(±exponent) are normal numbers.
  const auto bounded = select(field < field(1u), std::uint64_t{1}, select(field > 2045u, std::uint64_t{2045}, field));
  const auto down = bits_as<double>((2046u - bounded) << 52u);
  const auto up = bits_as<double>(bounded << 52u);
  return {x * down, up, to_real<double>(resize<std::int64_t>(bounded)) - 1023.0};
}

/// √(re² + im²), infinite if a part is.
template <class B>
Value<B, double> magnitude(const Complex<B>& x) {
  const auto s = scaled(x);
  const auto size = sqrt(fma(s.y.re, s.y.re, s.y.im * s.y.im));
  return select(is_infinite(x), kInfinity<double>, size * s.up);
}

/// The nearest corner of the unit box for an infinite x, else signed zeros: what x means in a quotient.
template <class B>
Value<B, double> box(Value<B, double> x) {
  return with_sign(select(is_infinite(x), 1.0, x(0)), x);
}

/// x/y: with both scaled, x·conj(y)/|y|². Where that is NaN in both parts, annex G's answers for infinities and zeros.
template <class B>
Complex<B> operator/(const Complex<B>& x, const Complex<B>& y) {
  using V = Value<B, double>;
  const auto sx = scaled(x), sy = scaled(y);
  const V size = fma(sy.y.re, sy.y.re, sy.y.im * sy.y.im);
  const auto product = sx.y * conjugate(sy.y);
  // The scales' quotient may leave the range before the result does: the larger factor goes with the smaller.
  const auto rescale = [&](V part) { return ((part / size) * sx.up) / sy.up; };
  const auto rescale_late = [&](V part) { return ((part / size) / sy.up) * sx.up; };
  const auto big = sx.up > 1.0;
  const Complex<B> quotient = {select(big, rescale_late(product.re), rescale(product.re)),
                               select(big, rescale_late(product.im), rescale(product.im))};
  const V infinity = with_sign(x.re(kInfinity<double>), y.re);
  const auto by_zero = (y.re == y.re(0)) & (y.im == y.im(0)) & !(is_nan(x.re) & is_nan(x.im));
  const auto huge = is_infinite(x) & is_finite(y);
  const auto vanishing = is_finite(x) & is_infinite(y);
  const Complex<B> bx{box(x.re), box(x.im)}, by{box(y.re), box(y.im)};
  const Complex<B> at_infinity = (bx * conjugate(y)) * x.re(kInfinity<double>);
  const Complex<B> at_zero = (x * conjugate(by)) * x.re(0);
  Complex<B> special = select(vanishing, at_zero, quotient);
  special = select(huge, at_infinity, special);
  special = select(by_zero, x * infinity, special);
  return select(is_nan(quotient.re) & is_nan(quotient.im), special, quotient);
}

/// x/|x|, or x if it is 0.
template <class B>
Complex<B> sign(const Complex<B>& x) {
  const auto s = scaled(x).y;
  const auto size = sqrt(fma(s.re, s.re, s.im * s.im));
  const auto nan = is_nan(x.re) | is_nan(x.im);
  const auto zero = (x.re == x.re(0)) & (x.im == x.im(0));
  const Complex<B> unit{s.re / size, s.im / size};
  const Complex<B> nans{x.re(kNaN<double>), x.re(kNaN<double>)};
  return select(nan, nans, select(zero, x, unit));
}

/// The root with a real part that is not negative. With t = √((|re| + |x|)/2) its parts are t and im/2t.
template <class B>
Complex<B> square_root(const Complex<B>& x) {
  using V = Value<B, double>;
  // Scaled by an even power; √ halves it.
  const auto large = maximum(abs(x.re), abs(x.im)) > 0x1p500;
  const auto small = maximum(abs(x.re), abs(x.im)) < 0x1p-500;
  const V down = select(large, 0x1p-600, select(small, 0x1p600, x.re(1)));
  const V up = select(large, 0x1p300, select(small, 0x1p-300, x.re(1)));
  const Complex<B> y = x * down;
  const V size = sqrt(fma(y.re, y.re, y.im * y.im));
  const V t = sqrt(0.5 * (abs(y.re) + size));
  const V other = select(t == t(0), t, abs(y.im) / (t + t));
  const auto right = x.re >= 0;
  const Complex<B> root{select(right, t, other) * up, with_sign(select(right, other, t) * up, x.im)};
  // An infinite im counts above all else, an infinite re above a NaN.
  const V infinite = x.re(kInfinity<double>);
  const V zero_or_nan = select(is_nan(x.im), kNaN<double>, x.re(0));
  const Complex<B> right_end{infinite, select(is_nan(x.im), x.im, with_sign(x.re(0), x.im))};
  const Complex<B> left_end{zero_or_nan, with_sign(infinite, x.im)};
  Complex<B> result = select(is_infinite(x.re), select(x.re > 0, right_end, left_end), root);
  return select(is_infinite(x.im), Complex<B>{infinite, x.im}, result);
}

/// 1/√x: the conjugate of the root by the size of x. 0 gives infinity + i·NaN, as 1/0 does.
template <class B>
Complex<B> reciprocal_square_root(const Complex<B>& x) {
  using V = Value<B, double>;
  const auto root = square_root(x);
  const V size = magnitude(root);  // √|x|
  const Complex<B> result{(root.re / size) / size, (-root.im / size) / size};
  const auto zero = (x.re == x.re(0)) & (x.im == x.im(0));
  const Complex<B> at_zero{x.re(kInfinity<double>), x.re(kNaN<double>)};
  const Complex<B> at_infinity{x.re(0), -with_sign(x.re(0), x.im)};
  return select(zero, at_zero, select(is_infinite(x), at_infinity, result));
}

/// The angle of x, as C99's carg.
template <class B>
Value<B, double> argument(const Complex<B>& x) {
  return arc_tangent2(x.im, x.re);
}

/// log |x|. Near |x| = 1, from |x|² - 1.
template <class B>
Value<B, double> log_magnitude(const Complex<B>& x) {
  using V = Value<B, double>;
  const V a = maximum(abs(x.re), abs(x.im)), b = minimum(abs(x.re), abs(x.im));
  const V near = 0.5 * log_plus_one(fma(b, b, (a - 1) * (a + 1)));
  const auto s = scaled(x);
  const V size = sqrt(fma(s.y.re, s.y.re, s.y.im * s.y.im));
  const auto parts = split_logarithm(size);
  const V far = logarithm_of(parts.e + s.exponent, parts.f);
  const V result = select((a > 0.5) & (a < 2), near, far);
  return select(is_infinite(x), kInfinity<double>, select(a == a(0), -kInfinity<double>, select(is_nan(a), a, result)));
}

template <class B>
Complex<B> logarithm(const Complex<B>& x) {
  return {log_magnitude(x), argument(x)};
}

/// log(1 + x). Near 0, log |1 + x| from |1 + x|² - 1 = re·(re + 2) + im².
template <class B>
Complex<B> log_plus_one(const Complex<B>& x) {
  using V = Value<B, double>;
  const V excess = fma(x.im, x.im, x.re * (x.re + 2));
  const Complex<B> y{x.re + 1, x.im};
  const auto near = (abs(x.re) < 0.5) & (abs(x.im) < 0.5);
  return {select(near, 0.5 * log_plus_one(excess), log_magnitude(y)), argument(y)};
}

/// e^x. e^re·cos(im) may be finite though e^re is not, so the power of two comes last.
template <class B>
Complex<B> exponential(const Complex<B>& x) {
  using V = Value<B, double>;
  // At these bounds nothing is left of a sine's 2^-62.
  const auto parts = split_exponent(larger(-1400.0, smaller(1400.0, x.re)));
  const V size = 1 + (parts.r + (parts.tail() + parts.r_low()));
  const V re = scale(size * cosine(x.im), parts.n), im = scale(size * sine(x.im), parts.n);
  const auto no_angle = !is_finite(x.im);
  const auto vanishing = no_angle & (x.re == x.re(-kInfinity<double>));
  // C99 leaves the sign at an infinite angle open, so that is a NaN.
  const auto huge = is_nan(x.im) & (x.re == x.re(kInfinity<double>));
  const V re_known = select(vanishing, 0.0, select(huge, kInfinity<double>, re));
  const V im_known = select(vanishing, 0.0, select(x.im == x.im(0), x.im, im));
  return {re_known, im_known};
}

/// e^x - 1: (e^re - 1)·cos(im) + (cos(im) - 1), the last without cancellation.
template <class B>
Complex<B> exponential_minus_one(const Complex<B>& x) {
  using V = Value<B, double>;
  const auto e = exponential(x);
  const V s = sine(x.im), c = cosine(x.im);
  const V c_less_one = select(c > 0, -(s * s) / (1 + c), c - 1);
  const V near = fma(exponential_minus_one(x.re), c, c_less_one);
  return {select(abs(x.re) < 1, near, e.re - 1), e.im};
}

/// 1/(1 + e^-x), as w/(1 + w) or 1/(1 + w) with w = e^∓x, |w| <= 1. 1 + w vanishes near odd multiples of iπ:
/// its real part is (1 - |w|) + |w|·(1 + cos).
template <class B>
Complex<B> logistic(const Complex<B>& x) {
  using V = Value<B, double>;
  const auto left = x.re < 0;
  const Complex<B> w = exponential(select(left, x, -x));
  const V a = -abs(x.re);
  const V s = sine(x.im), c = cosine(x.im);
  const V one_plus_cosine = select(c < 0, (s * s) / (1 - c), 1 + c);
  const V re = fma(exponential(a), one_plus_cosine, -exponential_minus_one(a));
  const Complex<B> one{x.re(1), x.re(0)};
  return select(left, w, one) / Complex<B>{select(is_finite(x), re, 1 + w.re), w.im};
}

/// |x|^(1/3) at a third of the angle.
template <class B>
Complex<B> cube_root(const Complex<B>& x) {
  using V = Value<B, double>;
  // Neither part may be so large that the size overflows.
  const auto huge = !((abs(x.re) < 0x1p1000) & (abs(x.im) < 0x1p1000));
  const V size = cube_root(magnitude(x * select(huge, x.re(0x1p-300), x.re(1)))) * select(huge, x.re(0x1p100), x.re(1));
  const V third = argument(x) / 3.0;
  const auto zero = (x.re == x.re(0)) & (x.im == x.im(0));
  return select(zero, x, Complex<B>{size * cosine(third), size * sine(third)});
}

/// x^y = e^(y·log x); x^0 = 1 for any x, as for real numbers, and 0^y = 0 where y has a positive real part.
template <class B>
Complex<B> power(const Complex<B>& x, const Complex<B>& y) {
  const auto zero = (x.re == x.re(0)) & (x.im == x.im(0));
  const auto no_power = (y.re == y.re(0)) & (y.im == y.im(0));
  const Complex<B> nothing{x.re(0), x.re(0)}, one{x.re(1), x.re(0)};
  const Complex<B> result = exponential(y * logarithm(x));
  return select(no_power, one, select(zero & (y.re > 0), nothing, result));
}

}  // namespace hloom::functions
