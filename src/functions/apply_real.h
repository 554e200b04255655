// From an opcode to its body, for float and double.
#pragma once

#include <optional>

#include "functions/arithmetic.h"
#include "functions/element.h"
#include "functions/error_function.h"
#include "functions/exponential.h"
#include "functions/huge_angle.h"
#include "functions/inverse_trigonometric.h"
#include "functions/logarithm.h"
#include "functions/power.h"
#include "functions/roots.h"
#include "hlo/opcode.h"

namespace hloom::functions {

using hlo::Opcode;

/// Functions with a body for double alone; a float takes it there and is rounded once.
template <class B>
std::optional<Value<B, double>> apply_double(Opcode opcode, Value<B, double> x) {
  switch (opcode) {
    case Opcode::Tan: return tangent(x);
    case Opcode::Sinh: return hyperbolic(x).sinh;
    case Opcode::Cosh: return hyperbolic(x).cosh;
    case Opcode::Asinh: return inverse_sinh(x);
    case Opcode::Acosh: return inverse_cosh(x);
    case Opcode::Atanh: return inverse_tanh(x);
    case Opcode::Asin: return inverse_sine(x);
    case Opcode::Acos: return inverse_cosine(x);
    case Opcode::Atan: return inverse_tangent(x);
    case Opcode::Cbrt: return cube_root(x);
    default: return {};
  }
}

/// opcode(x), or nothing if it is no function from T to T of one operand.
template <class B, class T>
std::optional<Value<B, T>> apply_real(Opcode opcode, Value<B, T> x) {
  switch (opcode) {
    case Opcode::Abs: return abs(x);
    case Opcode::Negate: return -x;
    case Opcode::Real:
    case Opcode::Copy: return x;
    case Opcode::Imag: return x(T{0});
    case Opcode::Sign: return sign(x);
    case Opcode::Floor: return floor(x);
    case Opcode::Ceil: return ceil(x);
    case Opcode::RoundNearestEven: return round_even(x);
    case Opcode::RoundNearestAfz: return round_away(x);
    case Opcode::Sqrt: return sqrt(x);
    case Opcode::Rsqrt: return reciprocal_sqrt(x);
    case Opcode::Exponential: return exponential(x);
    case Opcode::ExponentialMinusOne: return exponential_minus_one(x);
    case Opcode::Log: return logarithm(x);
    case Opcode::LogPlusOne: return log_plus_one(x);
    case Opcode::Logistic: return logistic(x);
    case Opcode::Tanh: return tanh(x);
    case Opcode::Erf: return error_function(x);
    case Opcode::Sine: return sine(x);
    case Opcode::Cosine: return cosine(x);
    default: break;
  }
  const std::optional<Value<B, double>> y = apply_double(opcode, to_real<double>(x));
  if (!y) return {};
  return to_real<T>(*y);
}

template <class B, class T>
std::optional<Value<B, T>> apply_real(Opcode opcode, Value<B, T> x, Value<B, T> y) {
  switch (opcode) {
    case Opcode::Add: return x + y;
    case Opcode::Subtract: return x - y;
    case Opcode::Multiply: return x * y;
    case Opcode::Divide: return x / y;
    case Opcode::Remainder: return remainder(x, y);
    case Opcode::Maximum: return maximum(x, y);
    case Opcode::Minimum: return minimum(x, y);
    case Opcode::Power: return power(x, y);
    case Opcode::Atan2: return to_real<T>(arc_tangent2(to_real<double>(x), to_real<double>(y)));
    default: return {};
  }
}

}  // namespace hloom::functions
