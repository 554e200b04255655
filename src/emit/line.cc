// Elementwise lines: what functions/ computes, on scalars or on all lanes.
#include <llvm/IR/Constants.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "emit/function.h"
#include "emit/ir_builder.h"
#include "functions/apply.h"

namespace hloom::emit {

using functions::Element;
using hlo::Opcode;
using llvm::Value;

namespace {

Element<IrBuilder> element_of(Parts p) { return {p.real, p.imag}; }
Parts parts_of(Element<IrBuilder> e) { return {e.real, e.imag}; }

// The constant's number in the type, from its bytes.
Value* constant_part(Function& f, DType type, std::uint64_t bits) {
  llvm::Type* element = register_type(f, type);
  if (type == DType::Pred) return f.b.getInt1((bits & 0xFF) != 0);
  const auto width = static_cast<unsigned>(element->getPrimitiveSizeInBits().getFixedValue());
  const llvm::APInt number(width, bits, /*isSigned=*/false, /*implicitTrunc=*/true);
  if (element->isIntegerTy()) return llvm::ConstantInt::get(element, number);
  return llvm::ConstantFP::get(element, llvm::APFloat(element->getFltSemantics(), number));
}

Parts emit_constant(Function& f, const kernels::Line& line) {
  const DType type = f.kernel.type(line.result), part = real_type(type);
  const std::uint64_t* bytes = line.constant;
  if (!is_complex(type)) return {constant_part(f, type, bytes[0]), nullptr};
  const std::uint64_t imag = part == DType::F32 ? bytes[0] >> 32 : bytes[1];
  return {constant_part(f, part, bytes[0]), constant_part(f, part, imag)};
}

// The same bits as another type of that width.
Value* bitcast_part(Function& f, DType to, Value* x, bool vector) {
  llvm::Type* element = register_type(f, to);
  llvm::Type* type = vector ? lanes_of(f, element) : element;
  if (x->getType()->isIntOrIntVectorTy(1)) return to == DType::Pred ? x : f.b.CreateZExt(x, type);
  if (to == DType::Pred) return f.b.CreateIsNotNull(x);
  x = f.b.CreateBitCast(x, type);
  const int unused = bit_width(to) < 8 ? 8 - bit_width(to) : 0;
  if (unused == 0) return x;
  Value* top = f.b.CreateShl(x, static_cast<std::uint64_t>(unused));
  return is_signed(to) ? f.b.CreateAShr(top, static_cast<std::uint64_t>(unused))
                       : f.b.CreateLShr(top, static_cast<std::uint64_t>(unused));
}

}  // namespace

Expected<> emit_line(Function& f, const kernels::Line& line) {
  if (line.opcode == Opcode::Constant) {
    set(f, line.result, emit_constant(f, line), false);
    return {};
  }
  const bool vector = f.is_varying(line.result);
  IrBuilder b(f.b, vector ? static_cast<unsigned>(f.lanes.count) : 1);
  const DType type = f.kernel.type(line.operands[0]), to = f.kernel.type(line.result);
  llvm::SmallVector<Element<IrBuilder>, 3> v;
  for (const kernels::Value x : line.operands) v.push_back(element_of(operand(f, x, vector)));
  Parts result;
  switch (line.opcode) {
    case Opcode::Convert: result = parts_of(functions::apply_convert(b, type, to, v[0])); break;
    case Opcode::Compare:
      result = parts_of(
          functions::apply_compare(b, line.compare.direction, line.compare.type, type, v[0], v[1]));
      break;
    case Opcode::Select: result = parts_of(functions::apply_select(b, to, v[0], v[1], v[2])); break;
    case Opcode::Clamp: result = parts_of(functions::apply_clamp(b, to, v[0], v[1], v[2])); break;
    case Opcode::BitcastConvert: result = {bitcast_part(f, to, v[0].real, vector), v[0].imag}; break;
    default:
      result = parts_of(v.size() == 1 ? functions::apply_unary(b, line.opcode, type, v[0])
                                      : functions::apply_binary(b, line.opcode, type, v[0], v[1]));
  }
  set(f, line.result, result, vector);
  return {};
}

Expected<Parts> combine(Function& f, Opcode opcode, DType type, Parts x, Parts y) {
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(x.real->getType());
  IrBuilder b(f.b, lanes ? lanes->getNumElements() : 1);
  return parts_of(functions::apply_binary(b, opcode, type, element_of(x), element_of(y)));
}

Expected<> emit_multiply_add(Function& f, const kernels::MultiplyAdd& m) {
  const bool vector = f.is_varying(m.result);
  Value* a = operand(f, m.a, vector).real;
  Value* sum = f.b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()},
                                   {a, operand(f, m.b, vector).real, operand(f, m.c, vector).real});
  set(f, m.result, {sum, nullptr}, vector);
  return {};
}

}  // namespace hloom::emit
