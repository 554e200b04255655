// The bodies of this folder as plain functions on bits: apply.h with CppBuilder, compiled once.
//
//   Scalar y = evaluate_unary(Opcode::Tanh, DType::F32, scalar_of(0.5f));
#pragma once

#include <bit>
#include <cstdint>

#include "functions/value.h"
#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hloom/shape.h"

namespace hloom::functions {

/// An element as bits: the low bits of `real` are its storage (pred 0 or 1; sub-byte integers extended to 8 bits by
/// their sign; narrow floats their pattern), and of `imag` for complex types. Higher bits are ignored, and 0 in
/// results.
struct Scalar {
  std::uint64_t real = 0;
  std::uint64_t imag = 0;
  bool operator==(const Scalar&) const = default;
};
template <class T>
Scalar scalar_of(T x) {
  return {static_cast<std::uint64_t>(std::bit_cast<UnsignedOf<T>>(x)), 0};
}
template <class T>
T value_of_scalar(Scalar x) {
  return std::bit_cast<T>(static_cast<UnsignedOf<T>>(x.real));
}

/// As the apply_… of apply.h and apply_convert.h. `type` is that of the operands. Any thread may call them.
/// Needs: an opcode that the verifier allows for the type.
Scalar evaluate_unary(hlo::Opcode, DType type, Scalar x);
Scalar evaluate_binary(hlo::Opcode, DType type, Scalar x, Scalar y);
Scalar evaluate_clamp(DType type, Scalar low, Scalar x, Scalar high);
Scalar evaluate_compare(hlo::Direction, hlo::Comparison, DType type, Scalar x, Scalar y);
Scalar evaluate_select(DType type, Scalar pred, Scalar yes, Scalar no);
Scalar evaluate_convert(DType from, DType to, Scalar x);
Scalar evaluate_reduce_precision(DType type, int exponent_bits, int mantissa_bits, Scalar x);
Scalar evaluate_stochastic_convert(DType from, DType to, Scalar x, Scalar random);

}  // namespace hloom::functions
