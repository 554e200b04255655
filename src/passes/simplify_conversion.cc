#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

// Each value of `from` is one of `to`, so that a conversion through `to` is the direct one: integers wrap, floats
// saturate, so the two may not be mixed further on.
bool is_exact(DType from, DType to) {
  if (from == DType::Pred) return (is_integral(to) && bit_width(to) > 1) || to == DType::F32 || to == DType::F64;
  if (is_integral(from) && is_integral(to))
    return is_signed(from) == is_signed(to) ? bit_width(to) >= bit_width(from)
                                            : is_unsigned(from) && bit_width(to) > bit_width(from);
  if (from == DType::F32) return to == DType::F64;
  if (from == DType::F16 || from == DType::BF16) return to == DType::F32 || to == DType::F64;
  return false;
}

Instruction* simplify_convert(Instruction& i) {
  Instruction* x = i.operand(0);
  const DType type = i.shape().dtype();
  if (x->shape().dtype() == type) return x;
  if (!is(x, Opcode::Convert)) return nullptr;
  Instruction* source = x->operand(0);
  if (is_exact(source->shape().dtype(), x->shape().dtype())) return Make(i).convert(source, type);
  return nullptr;
}

Instruction* simplify_bitcast_convert(Instruction& i) {
  Instruction* x = i.operand(0);
  if (x->shape() == i.shape()) return x;
  // Through any type and back, or on: the bits are the same, if no dimension was split off or taken in.
  if (!is(x, Opcode::BitcastConvert) || !is_plain(x->operand(0)->shape())) return nullptr;
  if (!same_dims(x->shape(), i.shape()) || !same_dims(x->operand(0)->shape(), x->shape())) return nullptr;
  Make make(i);
  if (x->operand(0)->shape() == i.shape()) return x->operand(0);
  return make.op(Opcode::BitcastConvert, i.shape(), {x->operand(0)});
}

Instruction* simplify_parts(Instruction& i) {
  Instruction* x = i.operand(0);
  const bool complex = is_complex(x->shape().dtype());
  if (is(&i, Opcode::Real)) {
    if (!complex) return x;
    return is(x, Opcode::Complex) ? x->operand(0) : nullptr;
  }
  return complex && is(x, Opcode::Complex) ? x->operand(1) : nullptr;
}

Instruction* reassembled_complex(Instruction& i) {
  Instruction *re = i.operand(0), *im = i.operand(1);
  const bool parts = is(re, Opcode::Real) && is(im, Opcode::Imag) && re->operand(0) == im->operand(0) &&
                     re->operand(0)->shape() == i.shape();
  return parts ? re->operand(0) : nullptr;
}

}  // namespace

Instruction* conversion(Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Convert: return simplify_convert(i);
    case Opcode::BitcastConvert: return simplify_bitcast_convert(i);
    case Opcode::Real:
    case Opcode::Imag: return simplify_parts(i);
    case Opcode::Complex: return reassembled_complex(i);
    default: return nullptr;
  }
}

}  // namespace hloom::passes::rules
