// From an opcode to its body, for complex numbers.
#pragma once

#include <optional>

#include "functions/complex.h"
#include "functions/complex_hyperbolic.h"
#include "functions/element.h"
#include "hlo/opcode.h"

namespace hloom::functions {

using hlo::Opcode;

/// opcode(x), or nothing if it is no function from complex to complex of one operand.
template <class B>
std::optional<Complex<B>> apply_complex(Opcode opcode, const Complex<B>& x) {
  switch (opcode) {
    case Opcode::Sign: return sign(x);
    case Opcode::Sqrt: return square_root(x);
    case Opcode::Rsqrt: return reciprocal_square_root(x);
    case Opcode::Cbrt: return cube_root(x);
    case Opcode::Exponential: return exponential(x);
    case Opcode::ExponentialMinusOne: return exponential_minus_one(x);
    case Opcode::Log: return logarithm(x);
    case Opcode::LogPlusOne: return log_plus_one(x);
    case Opcode::Logistic: return logistic(x);
    case Opcode::Sine: return sine(x);
    case Opcode::Cosine: return cosine(x);
    case Opcode::Tan: return tangent(x);
    case Opcode::Sinh: return hyperbolic_sine(x);
    case Opcode::Cosh: return hyperbolic_cosine(x);
    case Opcode::Tanh: return hyperbolic_tangent(x);
    case Opcode::Asin: return inverse_sine(x);
    case Opcode::Acos: return inverse_cosine(x);
    case Opcode::Atan: return inverse_tangent(x);
    case Opcode::Asinh: return inverse_hyperbolic_sine(x);
    case Opcode::Acosh: return inverse_hyperbolic_cosine(x);
    case Opcode::Atanh: return inverse_hyperbolic_tangent(x);
    default: return {};
  }
}
template <class B>
std::optional<Complex<B>> apply_complex(Opcode opcode, const Complex<B>& x, const Complex<B>& y) {
  switch (opcode) {
    case Opcode::Divide: return x / y;
    case Opcode::Power: return power(x, y);
    case Opcode::Atan2: return arc_tangent2(x, y);
    default: return {};
  }
}

/// What needs no more than T's own operations.
template <class B, class T>
std::optional<Complex<B, T>> apply_plain(Opcode opcode, const Complex<B, T>& x, const Complex<B, T>& y) {
  switch (opcode) {
    case Opcode::Add: return x + y;
    case Opcode::Subtract: return x - y;
    case Opcode::Multiply: return x * y;
    default: return {};
  }
}

template <class T, class B>
Complex<B, T> complex_part(B& b, const Element<B>& x) {
  return {part<T>(b, x.real), part<T>(b, x.imag)};
}
template <class B, class T>
Element<B> element(const Complex<B, T>& x) {
  return {element(x.re).real, element(x.im).real};
}
template <class B>
Complex<B> widen(B& b, DType type, const Element<B>& x) {
  if (type == DType::C128) return complex_part<double>(b, x);
  const auto narrow = complex_part<float>(b, x);
  return {to_real<double>(narrow.re), to_real<double>(narrow.im)};
}
template <class B>
Element<B> rounded(DType type, const Complex<B>& x) {
  if (type == DType::C128) return element(x);
  return element(Complex<B, float>{to_real<float>(x.re), to_real<float>(x.im)});
}

/// An opcode of one operand of type c64 or c128; abs, real and imag give a real number.
template <class B>
std::optional<Element<B>> apply_complex(B& b, Opcode opcode, DType type, const Element<B>& x) {
  switch (opcode) {
    case Opcode::Copy: return x;
    case Opcode::Real: return Element<B>{x.real, {}};
    case Opcode::Imag: return Element<B>{x.imag, {}};
    case Opcode::Negate:
      if (type == DType::C64) return element(-complex_part<float>(b, x));
      return element(-complex_part<double>(b, x));
    case Opcode::Abs: {
      const Value<B, double> size = magnitude(widen(b, type, x));
      return type == DType::C64 ? element(to_real<float>(size)) : element(size);
    }
    default: break;
  }
  const auto y = apply_complex(opcode, widen(b, type, x));
  if (!y) return {};
  return rounded(type, *y);
}

/// An opcode of two operands of type c64 or c128.
template <class B>
std::optional<Element<B>> apply_complex(B& b, Opcode opcode, DType type, const Element<B>& x, const Element<B>& y) {
  if (type == DType::C64) {
    if (const auto z = apply_plain(opcode, complex_part<float>(b, x), complex_part<float>(b, y))) return element(*z);
  } else if (const auto z = apply_plain(opcode, complex_part<double>(b, x), complex_part<double>(b, y))) {
    return element(*z);
  }
  const auto z = apply_complex(opcode, widen(b, type, x), widen(b, type, y));
  if (!z) return {};
  return rounded(type, *z);
}

}  // namespace hloom::functions
