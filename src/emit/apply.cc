#include "emit/apply.h"

#include <llvm/IR/DerivedTypes.h>

#include "emit/ir_builder.h"
#include "functions/apply.h"

namespace hloom::emit {
namespace {

using Operand = functions::Element<IrBuilder>;

Operand in(Lanes x) { return {x.real, x.imag}; }
Lanes out(Operand x) { return {x.real, x.imag}; }

unsigned lanes_of(Lanes x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.real->getType());
  return vector != nullptr ? vector->getNumElements() : 1;
}

}  // namespace

llvm::Type* element_ir_type(llvm::LLVMContext& context, DType type) {
  HLOOM_CHECK(is_array_type(type));
  const DType part = real_type(type);
  if (part == DType::Pred) return llvm::Type::getInt1Ty(context);
  if (part == DType::F32) return llvm::Type::getFloatTy(context);
  if (part == DType::F64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(8 * byte_width(part)));
}

Lanes emit_unary(llvm::IRBuilderBase& ir, hlo::Opcode opcode, DType type, Lanes x) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_unary(b, opcode, type, in(x)));
}
Lanes emit_binary(llvm::IRBuilderBase& ir, hlo::Opcode opcode, DType type, Lanes x, Lanes y) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_binary(b, opcode, type, in(x), in(y)));
}
Lanes emit_clamp(llvm::IRBuilderBase& ir, DType type, Lanes low, Lanes x, Lanes high) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_clamp(b, type, in(low), in(x), in(high)));
}
Lanes emit_compare(llvm::IRBuilderBase& ir, hlo::Direction direction, hlo::Comparison comparison, DType type, Lanes x,
                   Lanes y) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_compare(b, direction, comparison, type, in(x), in(y)));
}
Lanes emit_select(llvm::IRBuilderBase& ir, DType type, Lanes pred, Lanes yes, Lanes no) {
  IrBuilder b(ir, lanes_of(yes));
  return out(functions::apply_select(b, type, in(pred), in(yes), in(no)));
}
Lanes emit_convert(llvm::IRBuilderBase& ir, DType from, DType to, Lanes x) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_convert(b, from, to, in(x)));
}
Lanes emit_reduce_precision(llvm::IRBuilderBase& ir, DType type, int exponent_bits, int mantissa_bits, Lanes x) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_reduce_precision(b, type, exponent_bits, mantissa_bits, in(x)));
}
Lanes emit_stochastic_convert(llvm::IRBuilderBase& ir, DType from, DType to, Lanes x, Lanes random) {
  IrBuilder b(ir, lanes_of(x));
  return out(functions::apply_stochastic_convert(b, from, to, in(x), in(random)));
}

}  // namespace hloom::emit
