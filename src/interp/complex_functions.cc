// Operations on complex numbers, one formula each, computed in the next wider type and rounded once. With that many
// digits to spare the plain formulas do, where the distance counts in units of the larger part. Zeros, infinities and
// NaN are as annex G of C99 has them, from its library, where the function is in it.

#include <cmath>
#include <complex>
#include <cstring>

#include "interp/kernel.h"

namespace hloom::interp {
namespace {

using hlo::Opcode;

template <typename T>
using Complex = std::complex<T>;

template <typename T>
bool has_nan(Complex<T> z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}

// The usual formula, each product and sum rounded where the type is the numbers' own. (The language's own product makes infinities out of NaNs.)
template <typename T>
Complex<T> multiply(Complex<T> a, Complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename T>
bool is_infinite(Complex<T> z) {
  return std::isinf(z.real()) || std::isinf(z.imag());
}
template <typename T>
bool is_finite(Complex<T> z) {
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}

// The corner of the unit box towards which an infinite z lies.
template <typename T>
Complex<T> box(Complex<T> z) {
  const auto part = [](T x) { return std::copysign(T(std::isinf(x) ? 1 : 0), x); };
  return {part(z.real()), part(z.imag())};
}

template <typename T>
Complex<T> times(Complex<T> z, T x) {
  return {z.real() * x, z.imag() * x};
}

// a·conj(b) / |b|². The wide type's exponents hold all squares. Where that is NaN in both parts, C99's annex G (G.5.1) has an
// answer for a nonzero number by zero, an infinite one by a finite one, and a finite one by an infinite one.
template <typename T>
Complex<T> divide(Complex<T> a, Complex<T> b) {
  const T square = b.real() * b.real() + b.imag() * b.imag();
  const Complex<T> top = multiply(a, std::conj(b));
  const Complex<T> quotient(top.real() / square, top.imag() / square);
  if (!std::isnan(quotient.real()) || !std::isnan(quotient.imag())) return quotient;
  const T infinity = INFINITY;
  if (square == 0 && !(std::isnan(a.real()) && std::isnan(a.imag()))) return times(a, std::copysign(infinity, b.real()));
  if (is_infinite(a) && is_finite(b)) return times(multiply(box(a), std::conj(b)), infinity);
  if (is_finite(a) && is_infinite(b)) return times(multiply(a, std::conj(box(b))), T(0));
  return quotient;
}

template <typename T>
Complex<T> times_i(Complex<T> z) {
  return {-z.imag(), z.real()};
}

// As the library's but for +∞ + i·∞, of which it says an infinity of either sign and NaN: NaN in both parts.
template <typename T>
Complex<T> exponential(Complex<T> z) {
  if (z.real() == INFINITY && std::isinf(z.imag())) return {NAN, NAN};
  return std::exp(z);
}

// As the library's but for 0 + i·∞ and 0 + i·NaN, where it keeps the 0: NaN in both parts, as for all finite real
// parts.
template <typename T>
Complex<T> tangent_h(Complex<T> z) {
  if (std::isfinite(z.real()) && !std::isfinite(z.imag())) return {NAN, NAN};
  return std::tanh(z);
}

// -i·tanh(i·z)
template <typename T>
Complex<T> tangent(Complex<T> z) {
  const Complex<T> turned = tangent_h(times_i(z));
  return {turned.imag(), -turned.real()};
}

// exp(w·log a); a^0 = 1 for any a, 0^w = 0 where Re w > 0.
template <typename T>
Complex<T> power(Complex<T> a, Complex<T> w) {
  if (w == Complex<T>(0)) return 1;
  if (a == Complex<T>(0) && w.real() > 0) return 0;
  return exponential(multiply(w, std::log(a)));
}

// -i·log((x + i·y) / sqrt(x² + y²))
template <typename T>
Complex<T> atan2(Complex<T> y, Complex<T> x) {
  const Complex<T> length = std::sqrt(multiply(x, x) + multiply(y, y));
  const Complex<T> log = std::log(divide(x + times_i(y), length));
  return {log.imag(), -log.real()};
}

template <typename T>
Complex<T> sign(Complex<T> z) {
  if (has_nan(z)) return {NAN, NAN};
  if (z == Complex<T>(0)) return 0;
  const T length = std::hypot(z.real(), z.imag());
  return {z.real() / length, z.imag() / length};
}

// exp(z) - 1 = expm1(x)·cos y - 2·sin²(y/2) + i·exp(x)·sin y, where nothing is infinite
template <typename T>
Complex<T> expm1(Complex<T> z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};  // also where exp(x) is infinite
  if (std::isinf(z.real())) return exponential(z) - T(1);
  const T half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, std::exp(z.real()) * std::sin(z.imag())};
}

// log(1 + z) = log1p(2x + x² + y²) / 2 + i·atan2(y, 1 + x). Far from 0 the squares could lose what counts, or overflow;
// near -1 the sum 1 + x is exact.
template <typename T>
Complex<T> log1p(Complex<T> z) {
  const T x = z.real(), y = z.imag();
  if (x > 2 || x < -0.5 || std::fabs(y) > 2) return std::log(Complex<T>(1 + x, y));
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}

// 1 / (1 + exp(-z)); on the left half as exp(z) / (exp(z) + 1), so that nothing overflows.
template <typename T>
Complex<T> logistic(Complex<T> z) {
  const Complex<T> one(1);
  if (z.real() >= 0) return divide(one, one + std::exp(-z));
  const Complex<T> e = std::exp(z);
  return divide(e, e + one);
}

// The principal root: z^(1/3) through the polar form.
template <typename T>
Complex<T> cbrt(Complex<T> z) {
  return std::polar(std::cbrt(std::hypot(z.real(), z.imag())), std::arg(z) / 3);
}

template <typename Access, typename Op>
void to_real(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  using Part = typename Access::Exact::value_type;
  using Wide = typename Access::Wide;
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i)
    reinterpret_cast<Part*>(out)[i] = static_cast<Part>(Op()(static_cast<Wide>(a.load(in[0], i))));
}
template <typename Access, std::size_t kPart>
void part(const Kernel&, std::byte* out, const std::byte* const* in, std::int64_t n) {
  using Part = typename Access::Exact::value_type;
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof(Part)),
                in[0] + (2 * i + static_cast<std::int64_t>(kPart)) * static_cast<std::int64_t>(sizeof(Part)),
                sizeof(Part));
}

template <typename Op>
Kernel::Function exact(DType type, Op) {
  return with_complex(type,
                      [](const auto& a) -> Kernel::Function { return apply_exact1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function wide(DType type, Op) {
  return with_complex(type,
                      [](const auto& a) -> Kernel::Function { return apply_wide1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function exact_pair(DType type, Op) {
  return with_complex(type,
                      [](const auto& a) -> Kernel::Function { return apply_exact2<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function wide_pair(DType type, Op) {
  return with_complex(type,
                      [](const auto& a) -> Kernel::Function { return apply_wide2<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function real_valued(DType type, Op) {
  return with_complex(type, [](const auto& a) -> Kernel::Function { return to_real<std::decay_t<decltype(a)>, Op>; });
}

}  // namespace

Kernel::Function complex_function(Opcode opcode, DType type) {
  switch (opcode) {
    case Opcode::Abs: return real_valued(type, [](auto z) { return std::hypot(z.real(), z.imag()); });
    case Opcode::Real:
      return with_complex(type, [](const auto& a) -> Kernel::Function { return part<std::decay_t<decltype(a)>, 0>; });
    case Opcode::Imag:
      return with_complex(type, [](const auto& a) -> Kernel::Function { return part<std::decay_t<decltype(a)>, 1>; });
    case Opcode::Negate: return exact(type, [](auto z) { return -z; });
    case Opcode::Sign: return wide(type, [](auto z) { return sign(z); });
    case Opcode::Sqrt: return wide(type, [](auto z) { return std::sqrt(z); });
    case Opcode::Rsqrt: return wide(type, [](auto z) { return divide(decltype(z)(1), std::sqrt(z)); });
    case Opcode::Cbrt: return wide(type, [](auto z) { return cbrt(z); });
    case Opcode::Exponential: return wide(type, [](auto z) { return exponential(z); });
    case Opcode::ExponentialMinusOne: return wide(type, [](auto z) { return expm1(z); });
    case Opcode::Log: return wide(type, [](auto z) { return std::log(z); });
    case Opcode::LogPlusOne: return wide(type, [](auto z) { return log1p(z); });
    case Opcode::Logistic: return wide(type, [](auto z) { return logistic(z); });
    case Opcode::Sine: return wide(type, [](auto z) { return std::sin(z); });
    case Opcode::Cosine: return wide(type, [](auto z) { return std::cos(z); });
    case Opcode::Tan: return wide(type, [](auto z) { return tangent(z); });
    case Opcode::Tanh: return wide(type, [](auto z) { return tangent_h(z); });
    case Opcode::Sinh: return wide(type, [](auto z) { return std::sinh(z); });
    case Opcode::Cosh: return wide(type, [](auto z) { return std::cosh(z); });
    case Opcode::Asin: return wide(type, [](auto z) { return std::asin(z); });
    case Opcode::Acos: return wide(type, [](auto z) { return std::acos(z); });
    case Opcode::Atan: return wide(type, [](auto z) { return std::atan(z); });
    case Opcode::Asinh: return wide(type, [](auto z) { return std::asinh(z); });
    case Opcode::Acosh: return wide(type, [](auto z) { return std::acosh(z); });
    case Opcode::Atanh: return wide(type, [](auto z) { return std::atanh(z); });
    default: return nullptr;
  }
}

Kernel::Function complex_operation(Opcode opcode, DType type) {
  switch (opcode) {
    case Opcode::Add: return exact_pair(type, [](auto a, auto b) { return a + b; });
    case Opcode::Subtract: return exact_pair(type, [](auto a, auto b) { return a - b; });
    case Opcode::Multiply: return exact_pair(type, [](auto a, auto b) { return multiply(a, b); });
    case Opcode::Divide: return wide_pair(type, [](auto a, auto b) { return divide(a, b); });
    case Opcode::Power: return wide_pair(type, [](auto a, auto w) { return power(a, w); });
    case Opcode::Atan2: return wide_pair(type, [](auto y, auto x) { return atan2(y, x); });
    default: return nullptr;
  }
}

}  // namespace hloom::interp
