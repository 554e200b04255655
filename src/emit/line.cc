// Elementwise lines: what functions/ computes, on scalars or on all lanes.
#include <llvm/IR/Constants.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "emit/function.h"
#include "hlo/opcode.h"

namespace hloom::emit {

using hlo::Opcode;
using llvm::Value;

namespace {

// The constant's number in the type, from its bytes.
Value* constant_part(Function& f, DType type, std::uint64_t bits) {
  llvm::Type* element = element_ir_type(f.b.getContext(), type);
  if (type == DType::Pred) return f.b.getInt1((bits & 0xFF) != 0);
  const auto width = static_cast<unsigned>(element->getPrimitiveSizeInBits().getFixedValue());
  const llvm::APInt number(width, bits, /*isSigned=*/false, /*implicitTrunc=*/true);
  if (element->isIntegerTy()) return llvm::ConstantInt::get(element, number);
  return llvm::ConstantFP::get(element, llvm::APFloat(element->getFltSemantics(), number));
}

Lanes emit_constant(Function& f, const kernels::Line& line) {
  const DType type = f.kernel.type(line.result), part = real_type(type);
  const std::uint64_t* bytes = line.constant;
  if (!is_complex(type)) return {constant_part(f, type, bytes[0]), nullptr};
  const std::uint64_t imag = part == DType::F32 ? bytes[0] >> 32 : bytes[1];
  return {constant_part(f, part, bytes[0]), constant_part(f, part, imag)};
}

// The same bits as another type of that width.
Value* bitcast_part(Function& f, DType to, Value* x, bool vector) {
  llvm::Type* element = element_ir_type(f.b.getContext(), to);
  llvm::Type* type = vector ? vector_type(f, element) : element;
  if (x->getType()->isIntOrIntVectorTy(1)) return to == DType::Pred ? x : f.b.CreateZExt(x, type);
  if (to == DType::Pred) return f.b.CreateIsNotNull(x);
  x = f.b.CreateBitCast(x, type);
  const int unused = bit_width(to) < 8 ? 8 - bit_width(to) : 0;
  if (unused == 0) return x;
  Value* top = f.b.CreateShl(x, static_cast<std::uint64_t>(unused));
  return is_signed(to) ? f.b.CreateAShr(top, static_cast<std::uint64_t>(unused))
                       : f.b.CreateLShr(top, static_cast<std::uint64_t>(unused));
}

Lanes apply(Function& f, const kernels::Line& line, DType type, DType to, const Lanes* v, bool vector) {
  const hlo::CompareAttr& compare = line.compare;
  switch (line.opcode) {
    case Opcode::Convert: return emit_convert(f.b, type, to, v[0]);
    case Opcode::Compare: return emit_compare(f.b, compare.direction, compare.type, type, v[0], v[1]);
    case Opcode::Select: return emit_select(f.b, to, v[0], v[1], v[2]);
    case Opcode::Clamp: return emit_clamp(f.b, to, v[0], v[1], v[2]);
    case Opcode::ReducePrecision:
      return emit_reduce_precision(f.b, type, static_cast<int>(line.reduce_precision.exponent_bits),
                                   static_cast<int>(line.reduce_precision.mantissa_bits), v[0]);
    case Opcode::StochasticConvert: return emit_stochastic_convert(f.b, type, to, v[0], v[1]);
    case Opcode::BitcastConvert: return {bitcast_part(f, to, v[0].real, vector), v[0].imag};
    default: break;
  }
  if (line.operands.size() == 1) return emit_unary(f.b, line.opcode, type, v[0]);
  return emit_binary(f.b, line.opcode, type, v[0], v[1]);
}

// "tanh.f32.64" for 64 lanes, "tanh.f32" for one element.
std::string shared_name(Opcode opcode, DType type, const Value* x) {
  std::string name = std::string(hlo::name(opcode)) + "." + std::string(hloom::name(type));
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType())) name += "." + std::to_string(vector->getNumElements());
  return name;
}

}  // namespace

Expected<> emit_line(Function& f, const kernels::Line& line) {
  if (line.opcode == Opcode::Constant) {
    set(f, line.result, emit_constant(f, line), false);
    return {};
  }
  const bool vector = f.is_varying(line.result);
  const DType type = f.kernel.type(line.operands[0]), to = f.kernel.type(line.result);
  Lanes v[3];
  for (std::size_t i = 0; i < line.operands.size(); ++i) v[i] = operand(f, line.operands[i], vector);
  if (f.shares_functions && hlo::is_function(line.opcode)) {
    const auto body = [&](std::span<const Lanes> operands) { return apply(f, line, type, to, operands.data(), vector); };
    set(f, line.result, call_shared(f, shared_name(line.opcode, type, v[0].real), {v, line.operands.size()}, body), vector);
    return {};
  }
  set(f, line.result, apply(f, line, type, to, v, vector), vector);
  return {};
}

Expected<> emit_multiply_add(Function& f, const kernels::MultiplyAdd& m) {
  const bool vector = f.is_varying(m.result);
  if (f.kernel.type(m.result) == DType::S32) {
    Value* products = emit_byte_products(f, operand(f, m.a, vector).real, operand(f, m.b, vector).real, operand(f, m.c, vector).real);
    set(f, m.result, {products, nullptr}, vector);
    return {};
  }
  Value* a = operand(f, m.a, vector).real;
  Value* sum = f.b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()},
                                   {a, operand(f, m.b, vector).real, operand(f, m.c, vector).real});
  set(f, m.result, {sum, nullptr}, vector);
  return {};
}

}  // namespace hloom::emit
