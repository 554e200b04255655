// Complex hyperbolic and trigonometric functions and their inverses. The trigonometric ones are the hyperbolic ones
// turned by i, as annex G of C99 defines them.
#pragma once

#include "functions/complex.h"

namespace hloom::functions {

/// x·y, but 0 (with the sign of the product) where either is 0, even by an infinity or a NaN.
template <class B>
Value<B, double> product_or_zero(Value<B, double> x, Value<B, double> y) {
  const auto zero = (x == x(0)) | (y == y(0));
  return select(zero, bits_as<double>(sign_bit(x) ^ sign_bit(y)), x * y);
}

/// sinh and cosh of re with the sine and cosine of im; the power of two comes last.
template <class B>
struct HyperbolicAngle {
  HyperbolicParts<B> of;
  Value<B, double> sine, cosine;
  explicit HyperbolicAngle(const Complex<B>& x)
      : of(hyperbolic_parts(larger(-1400.0, smaller(1400.0, x.re)))),
        sine(functions::sine(x.im)),
        cosine(functions::cosine(x.im)) {}
  Value<B, double> product(Value<B, double> size, Value<B, double> factor) const {
    return scale(product_or_zero(size, factor), of.n);
  }
};

template <class B>
Complex<B> hyperbolic_sine(const Complex<B>& x) {
  const HyperbolicAngle<B> h(x);
  const auto lost = is_infinite(x.re) & !is_finite(x.im);
  return {select(lost, x.re, h.product(h.of.sinh, h.cosine)), h.product(h.of.cosh, h.sine)};
}
template <class B>
Complex<B> hyperbolic_cosine(const Complex<B>& x) {
  const HyperbolicAngle<B> h(x);
  const auto lost = is_infinite(x.re) & !is_finite(x.im);
  return {select(lost, kInfinity<double>, h.product(h.of.cosh, h.cosine)), h.product(h.of.sinh, h.sine)};
}

/// (sinh·cosh(re) + i·sin·cos(im))/(sinh²(re) + cos²(im)); far out, ±1 + 4i·sin·cos(im)·e^-2|re|. NaN for a finite real part
/// with an infinite imaginary one.
template <class B>
Complex<B> hyperbolic_tangent(const Complex<B>& x) {
  using V = Value<B, double>;
  const V a = abs(x.re);
  const auto h = hyperbolic(with_sign(smaller(30.0, a), x.re));
  const V s = sine(x.im), c = cosine(x.im);
  const V size = fma(h.sinh, h.sinh, c * c);
  const V turn = product_or_zero(s, c);
  const auto far = a > 22;
  const V falling = exponential(-2.0 * a);
  const V far_im = select(is_finite(x.im), 4.0 * turn * falling, x.re(0));
  const V re = select(far, with_sign(x.re(1), x.re), h.sinh * h.cosh / size);
  const V im = select(x.im == x.im(0), x.im, select(far, far_im, turn / size));
  const auto lost = is_finite(x.re) & !is_finite(x.im);
  return {select(lost, kNaN<double>, re), select(lost, kNaN<double>, im)};
}

template <class B>
Complex<B> sine(const Complex<B>& x) {
  return times_minus_i(hyperbolic_sine(times_i(x)));
}
template <class B>
Complex<B> cosine(const Complex<B>& x) {
  return hyperbolic_cosine(times_i(x));
}
template <class B>
Complex<B> tangent(const Complex<B>& x) {
  return times_minus_i(hyperbolic_tangent(times_i(x)));
}

/// Whether a formula with squares of x, or of roots near it, might overflow; then 1 counts nothing beside x.
template <class B>
Value<B, bool> is_huge(const Complex<B>& x) {
  return !((abs(x.re) < 0x1p500) & (abs(x.im) < 0x1p500));
}
/// log |2x|.
template <class B>
Value<B, double> log_of_double(const Complex<B>& x) {
  return log_magnitude(x) + Real<double>::kLn2;
}
/// 1 + x and 1 - x.
template <class B>
Complex<B> one_plus(const Complex<B>& x) {
  return {1 + x.re, x.im};
}

/// A part on its axis, whose result does not hang on the other part, which is NaN.
template <class B>
Value<B, bool> alone(Value<B, double> zero, Value<B, double> nan) {
  return (zero == zero(0)) & is_nan(nan);
}

/// Source: Kahan, "Branch cuts for complex elementary functions", 1987: all four inverses of this kind come from the
/// roots of 1 + x and 1 - x, so signed zeros choose the side of a cut and nothing cancels in the larger part.
template <class B>
Complex<B> inverse_sine(const Complex<B>& x) {
  const auto u = square_root(one_plus(-x)), v = square_root(one_plus(x));
  const Complex<B> result{arc_tangent2(x.re, u.re * v.re - u.im * v.im), inverse_sinh(u.re * v.im - u.im * v.re)};
  const Complex<B> far{arc_tangent2(x.re, abs(x.im)), with_sign(log_of_double(x), x.im)};
  const auto any = select(is_huge(x), far, result);
  return {select(alone<B>(x.re, x.im), x.re, any.re), any.im};
}
template <class B>
Complex<B> inverse_cosine(const Complex<B>& x) {
  const auto u = square_root(one_plus(-x)), v = square_root(one_plus(x));
  const Complex<B> result{2.0 * arc_tangent2(u.re, v.re), inverse_sinh(v.re * u.im - v.im * u.re)};
  const Complex<B> far{arc_tangent2(abs(x.im), x.re), -with_sign(log_of_double(x), x.im)};
  const auto any = select(is_huge(x), far, result);
  return {select(alone<B>(x.re, x.im), 2 * kQuarterPi, any.re), any.im};
}
template <class B>
Complex<B> inverse_hyperbolic_cosine(const Complex<B>& x) {
  const auto u = square_root(Complex<B>{x.re - 1, x.im}), v = square_root(one_plus(x));
  const Complex<B> result{inverse_sinh(u.re * v.re + u.im * v.im), 2.0 * arc_tangent2(u.im, v.re)};
  const Complex<B> far{log_of_double(x), argument(x)};
  const auto any = select(is_huge(x), far, result);
  return {any.re, select(alone<B>(x.re, x.im), 2 * kQuarterPi, any.im)};
}
template <class B>
Complex<B> inverse_hyperbolic_sine(const Complex<B>& x) {
  return times_i(inverse_sine(times_minus_i(x)));
}

/// With re >= 0: log(1 + 4·re/((1 - re)² + im²))/4 and half the angle of ((1 - re)(1 + re) - im², 2·im).
template <class B>
Complex<B> inverse_hyperbolic_tangent(const Complex<B>& x) {
  using V = Value<B, double>;
  const V a = abs(x.re), y = x.im;
  const V gap = 1 - a;
  const V ratio = (4.0 * a) / fma(gap, gap, y * y);
  // Beside 1 the square of a small im may vanish: log(2/|im|)/2.
  const V beside = 0.5 * (Real<double>::kLn2 - logarithm(abs(y)));
  const V re = select((gap == gap(0)) & (abs(y) < 0x1p-400), beside, 0.25 * log_plus_one(ratio));
  const V im = 0.5 * arc_tangent2(y + y, gap * (1 + a) - y * y);
  const auto inverse = Complex<B>{x.re(1), x.re(0)} / x;
  const Complex<B> far{abs(inverse.re), with_sign(x.re(2 * kQuarterPi), y)};
  const Complex<B> result = select(is_huge(x), far, Complex<B>{re, im});
  // Where one part is NaN the other one may still be known.
  const auto known = (x.re == x.re(0)) | is_infinite(x.re) | is_infinite(x.im);
  const V odd_im = select(is_infinite(x.im), with_sign(x.re(2 * kQuarterPi), y), x.re(kNaN<double>));
  const Complex<B> odd{select(known, x.re(0), x.re(kNaN<double>)), odd_im};
  const auto any = select(is_nan(x.re) | is_nan(x.im), odd, result);
  return {with_sign(abs(any.re), x.re), any.im};
}
template <class B>
Complex<B> inverse_tangent(const Complex<B>& x) {
  return times_minus_i(inverse_hyperbolic_tangent(times_i(x)));
}

/// -i·log((x + iy)/√(x² + y²)), the root's square as (x + iy)(x - iy), in which small parts get lost: which of the two roots
/// it is, where they are beside the imaginary axis, is known from im(x² + y²)/2.
template <class B>
Complex<B> arc_tangent2(const Complex<B>& y, const Complex<B>& x) {
  const Complex<B> plus = x + times_i(y), minus = x - times_i(y), square = plus * minus;
  const Value<B, double> side = fma(x.re, x.im, y.re * y.im);
  return times_minus_i(logarithm(plus / square_root(Complex<B>{square.re, with_sign(abs(square.im), side)})));
}

}  // namespace hloom::functions
