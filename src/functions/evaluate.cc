#include "functions/evaluate.h"

#include "functions/apply.h"
#include "functions/cpp_builder.h"

namespace hloom::functions {
namespace {

using Operand = Element<CppBuilder>;

Operand in(Scalar x) { return {x.real, x.imag}; }
Scalar out(Operand x) { return {x.real, x.imag}; }

}  // namespace

Scalar evaluate_unary(hlo::Opcode opcode, DType type, Scalar x) {
  CppBuilder b;
  return out(apply_unary(b, opcode, type, in(x)));
}
Scalar evaluate_binary(hlo::Opcode opcode, DType type, Scalar x, Scalar y) {
  CppBuilder b;
  return out(apply_binary(b, opcode, type, in(x), in(y)));
}
Scalar evaluate_clamp(DType type, Scalar low, Scalar x, Scalar high) {
  CppBuilder b;
  return out(apply_clamp(b, type, in(low), in(x), in(high)));
}
Scalar evaluate_compare(hlo::Direction direction, hlo::Comparison comparison, DType type, Scalar x, Scalar y) {
  CppBuilder b;
  return out(apply_compare(b, direction, comparison, type, in(x), in(y)));
}
Scalar evaluate_select(DType type, Scalar pred, Scalar yes, Scalar no) {
  CppBuilder b;
  return out(apply_select(b, type, in(pred), in(yes), in(no)));
}
Scalar evaluate_convert(DType from, DType to, Scalar x) {
  CppBuilder b;
  return out(apply_convert(b, from, to, in(x)));
}
Scalar evaluate_reduce_precision(DType type, int exponent_bits, int mantissa_bits, Scalar x) {
  CppBuilder b;
  return out(apply_reduce_precision(b, type, exponent_bits, mantissa_bits, in(x)));
}
Scalar evaluate_stochastic_convert(DType from, DType to, Scalar x, Scalar random) {
  CppBuilder b;
  return out(apply_stochastic_convert(b, from, to, in(x), in(random)));
}

}  // namespace hloom::functions
