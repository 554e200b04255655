#include <cmath>

#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

bool is_real(const Instruction& i) { return is_floating(i.shape().dtype()); }
bool is_int(const Instruction& i) { return is_integral(i.shape().dtype()); }
bool is_pred(const Instruction& i) { return i.shape().dtype() == DType::Pred; }

// The operand beside one that `matches`, of an op whose operands may change places.
template <typename Predicate>
Instruction* beside(Instruction& i, const Predicate& matches) {
  if (matches(i.operand(1))) return i.operand(0);
  if (matches(i.operand(0))) return i.operand(1);
  return nullptr;
}

// x + -0 is x for every x, -0 included; x + +0 is not.
Instruction* simplify_add(Instruction& i) {
  Make make(i);
  if (is_pred(i)) return make.binary(Opcode::Or, i.operand(0), i.operand(1));
  Instruction* x = beside(i, [&](Instruction* o) { return is_number(o, is_real(i) ? -0.0 : 0.0); });
  if (x != nullptr) return x;
  if (!is_real(i)) return nullptr;
  for (const int n : {0, 1})
    if (is(i.operand(n), Opcode::Negate))
      return make.binary(Opcode::Subtract, i.operand(1 - n), i.operand(n)->operand(0));
  return nullptr;
}

Instruction* simplify_subtract(Instruction& i) {
  Make make(i);
  Instruction *a = i.operand(0), *b = i.operand(1);
  if (is_number(b, 0)) return a;
  if (is_int(i) && a == b) return make.integer(i.shape().dtype(), 0, i.shape().dims());
  if (is_number(a, is_real(i) ? -0.0 : 0.0)) return make.unary(Opcode::Negate, b);
  if (is(b, Opcode::Negate)) return make.binary(Opcode::Add, a, b->operand(0));
  return nullptr;
}

Instruction* simplify_multiply(Instruction& i) {
  Make make(i);
  if (is_pred(i)) return make.binary(Opcode::And, i.operand(0), i.operand(1));
  if (Instruction* x = beside(i, [](Instruction* o) { return is_number(o, 1); })) return x;
  if (Instruction* x = beside(i, [](Instruction* o) { return is_number(o, -1); }); x && !is_unsigned(i.shape().dtype()))
    return make.unary(Opcode::Negate, x);
  if (is_int(i))
    if (beside(i, [](Instruction* o) { return is_number(o, 0); }))
      return make.integer(i.shape().dtype(), 0, i.shape().dims());
  const bool negated = is(i.operand(0), Opcode::Negate) && is(i.operand(1), Opcode::Negate);
  if (negated) return make.binary(Opcode::Multiply, i.operand(0)->operand(0), i.operand(1)->operand(0));
  return nullptr;
}

// A type whose division by a power of two is the multiplication by its inverse, both normal numbers.
template <typename T>
std::optional<hlo::Literal> exact_inverse(const hlo::Literal& divisor) {
  const T d = divisor.data<T>()[0];
  int exponent = 0;
  if (!std::isnormal(d) || std::abs(std::frexp(d, &exponent)) != T(0.5) || !std::isnormal(T(1) / d))
    return std::nullopt;
  hlo::Literal inverse(divisor.shape());
  inverse.mutable_data<T>()[0] = T(1) / d;
  return inverse;
}

Instruction* simplify_divide(Instruction& i) {
  if (is_number(i.operand(1), 1)) return i.operand(0);
  const auto divisor = splat_constant(i.operand(1));
  if (!divisor) return nullptr;
  const DType type = i.shape().dtype();
  std::optional<hlo::Literal> inverse;
  if (type == DType::F32) inverse = exact_inverse<float>(*divisor);
  if (type == DType::F64) inverse = exact_inverse<double>(*divisor);
  if (!inverse) return nullptr;
  Make make(i);
  return make.binary(Opcode::Multiply, i.operand(0), make.splat(*inverse, i.shape().dims()));
}

// For floats the functions' own x^1 and x^2 may be an ULP off x and x·x, and a value may not depend on what was folded.
Instruction* simplify_power(Instruction& i) {
  if (is_int(i) && is_number(i.operand(1), 1)) return i.operand(0);
  if (is_int(i) && is_number(i.operand(1), 0)) return Make(i).integer(i.shape().dtype(), 1, i.shape().dims());
  return nullptr;
}

Instruction* simplify_maximum(Instruction& i) {
  Make make(i);
  if (i.operand(0) == i.operand(1)) return i.operand(0);
  const bool is_max = is(&i, Opcode::Maximum);
  if (is_pred(i)) return make.binary(is_max ? Opcode::Or : Opcode::And, i.operand(0), i.operand(1));
  // What every other value wins against; a NaN wins anyhow.
  if (is_real(i)) {
    const double worst = is_max ? -HUGE_VAL : HUGE_VAL;
    return beside(i, [&](Instruction* o) { return is_number(o, worst); });
  }
  return nullptr;
}

Instruction* simplify_unary(Instruction& i) {
  Instruction* x = i.operand(0);
  Make make(i);
  switch (i.opcode()) {
    case Opcode::Negate: return is(x, Opcode::Negate) ? x->operand(0) : nullptr;
    case Opcode::Abs:
      if (is_complex(x->shape().dtype())) return nullptr;
      if (is(x, Opcode::Abs)) return x;
      return is(x, Opcode::Negate) ? make.unary(Opcode::Abs, x->operand(0)) : nullptr;
    case Opcode::Floor:
    case Opcode::Ceil:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Sign: return is(x, i.opcode()) ? x : nullptr;
    case Opcode::Copy: return x->shape() == i.shape() ? x : nullptr;
    default: return nullptr;
  }
}

Instruction* simplify_integer_shift(Instruction& i) { return is_number(i.operand(1), 0) ? i.operand(0) : nullptr; }

}  // namespace

Instruction* arithmetic(Instruction& i) {
  if (i.num_operands() == 0 || is_complex(i.operand(0)->shape().dtype())) return nullptr;
  switch (i.opcode()) {
    case Opcode::Add: return simplify_add(i);
    case Opcode::Subtract: return simplify_subtract(i);
    case Opcode::Multiply: return simplify_multiply(i);
    case Opcode::Divide: return simplify_divide(i);
    case Opcode::Power: return simplify_power(i);
    case Opcode::Maximum:
    case Opcode::Minimum: return simplify_maximum(i);
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical: return simplify_integer_shift(i);
    default: return i.num_operands() == 1 ? simplify_unary(i) : nullptr;
  }
}

}  // namespace hloom::passes::rules
