// The one way from an opcode and a type to a value: constant folding, the evaluation of kernels and the emitters all
// come through here, so that none has a table of its own. See element.h for how elements are held.
//
//   Element<B> y = apply_unary(b, Opcode::Tanh, DType::BF16, x);
//
// bf16, f16, f8 and f4 are computed as f32 and rounded once; the powers of two of f8e8m0fnu have products and quotients
// beyond f32's range, so two of them are computed as f64.
#pragma once

#include "functions/apply_complex.h"
#include "functions/apply_convert.h"
#include "functions/apply_integer.h"
#include "functions/apply_real.h"

namespace hloom::functions {

/// What a verified program cannot ask for.
template <class X>
X value_of(const std::optional<X>& x) {
  HLOOM_CHECK(x.has_value());  // the opcode suits the type
  return *x;
}

/// An elementwise opcode of one operand: hlo-ops 4.1, and copy. `type` is the operand's; the result's is the same, but
/// for abs, real and imag of complex numbers (their parts' type) and is-finite (pred).
/// Needs: an opcode that the verifier allows for the type.
template <class B>
Element<B> apply_unary(B& b, Opcode opcode, DType type, Element<B> x) {
  if (type == DType::Pred) return element(value_of(apply_pred(opcode, part<bool>(b, x.real))));
  if (is_integral(type))
    return with_integer(
        type, [&]<class T>() { return element(value_of(apply_integer(opcode, bit_width(type), part<T>(b, x.real)))); });
  if (is_complex(type)) return value_of(apply_complex(b, opcode, type, x));
  if (opcode == Opcode::Copy) return x;
  if (type == DType::F64) {
    const Value<B, double> v = part<double>(b, x.real);
    return opcode == Opcode::IsFinite ? element(is_finite(v)) : element(value_of(apply_real(opcode, v)));
  }
  const Value<B, float> v = as_float(b, type, x.real);
  if (opcode == Opcode::IsFinite) return element(is_finite(v));
  return from_float(type, value_of(apply_real(opcode, v)));
}

/// An elementwise opcode of two operands of one type: hlo-ops 4.2, but for compare.
template <class B>
Element<B> apply_binary(B& b, Opcode opcode, DType type, Element<B> x, Element<B> y) {
  if (opcode == Opcode::Complex) return {x.real, y.real};
  if (type == DType::Pred) return element(value_of(apply_pred(opcode, part<bool>(b, x.real), part<bool>(b, y.real))));
  if (is_integral(type))
    return with_integer(type, [&]<class T>() {
      return element(value_of(apply_integer(opcode, bit_width(type), part<T>(b, x.real), part<T>(b, y.real))));
    });
  if (is_complex(type)) return value_of(apply_complex(b, opcode, type, x, y));
  if (type == DType::F64)
    return element(value_of(apply_real(opcode, part<double>(b, x.real), part<double>(b, y.real))));
  if (type == DType::F8E8M0FNU) {
    const auto wide = [&](Element<B> e) { return to_real<double>(as_float(b, type, e.real)); };
    return to_float_type(type, value_of(apply_real(opcode, wide(x), wide(y))));
  }
  return from_float(type, value_of(apply_real(opcode, as_float(b, type, x.real), as_float(b, type, y.real))));
}

/// HLO's clamp.
template <class B>
Element<B> apply_clamp(B& b, DType type, Element<B> low, Element<B> x, Element<B> high) {
  return apply_binary(b, Opcode::Minimum, type, apply_binary(b, Opcode::Maximum, type, low, x), high);
}

}  // namespace hloom::functions
