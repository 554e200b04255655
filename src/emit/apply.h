// Elementwise opcodes in IR, for any element type, over scalars or fixed vectors: functions/apply.h with IrBuilder.
//
//   Lanes y = emit_unary(b, Opcode::Tanh, DType::BF16, x);
//
// All of it is straight-line code at b's insertion point, but for sine, cosine, tan, remainder of floats and what is
// made of them for complex numbers: see ir_builder.h. Those end the current block, and what follows goes to
// b.GetInsertBlock(). b's fast-math flags do not count.
#pragma once

#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hloom/shape.h"

namespace llvm {
class IRBuilderBase;
class LLVMContext;
class Type;
class Value;
}  // namespace llvm

namespace hloom::emit {

/// Elements as SSA values; both parts of a complex type, else `real` alone. Types, or vectors of them:
///   pred i1 · s1 … s8, u1 … u8 i8, extended by their sign · s16 … u64 iN · f32 float · f64 double
///   bf16 f16 i16 and f8… f4… i8, their bits · c64 two floats · c128 two doubles
struct Lanes {
  llvm::Value* real = nullptr;
  llvm::Value* imag = nullptr;
};

/// The IR type of one element, or one part of a complex one, as above. Needs: an array type.
llvm::Type* element_ir_type(llvm::LLVMContext&, DType type);

/// As the functions of the same words in functions/: `type` is the operands', and so is what the result has, but for
/// compare and is-finite (pred) and abs, real and imag of complex numbers (their parts').
/// Needs: operands of the same number of lanes; an opcode that the verifier allows for the type.
Lanes emit_unary(llvm::IRBuilderBase&, hlo::Opcode, DType type, Lanes x);
Lanes emit_binary(llvm::IRBuilderBase&, hlo::Opcode, DType type, Lanes x, Lanes y);
Lanes emit_clamp(llvm::IRBuilderBase&, DType type, Lanes low, Lanes x, Lanes high);
Lanes emit_compare(llvm::IRBuilderBase&, hlo::Direction, hlo::Comparison, DType type, Lanes x, Lanes y);
Lanes emit_select(llvm::IRBuilderBase&, DType type, Lanes pred, Lanes yes, Lanes no);
Lanes emit_convert(llvm::IRBuilderBase&, DType from, DType to, Lanes x);
Lanes emit_reduce_precision(llvm::IRBuilderBase&, DType type, int exponent_bits, int mantissa_bits, Lanes x);
Lanes emit_stochastic_convert(llvm::IRBuilderBase&, DType from, DType to, Lanes x, Lanes random);

}  // namespace hloom::emit
