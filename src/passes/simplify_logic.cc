#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

using hlo::Direction;

bool are_opposite(const Instruction* a, const Instruction* b) {
  return (is(a, Opcode::Not) && a->operand(0) == b) || (is(b, Opcode::Not) && b->operand(0) == a);
}

Direction opposite(Direction d) {
  switch (d) {
    case Direction::Eq: return Direction::Ne;
    case Direction::Ne: return Direction::Eq;
    case Direction::Ge: return Direction::Lt;
    case Direction::Lt: return Direction::Ge;
    case Direction::Gt: return Direction::Le;
    case Direction::Le: return Direction::Gt;
  }
  return d;
}

bool is_zero(Instruction* i) { return constant_integer(i) == 0; }

Instruction* simplify_and_or(Instruction& i) {
  const bool is_and = is(&i, Opcode::And);
  const DType type = i.shape().dtype();
  Instruction *a = i.operand(0), *b = i.operand(1);
  if (a == b) return a;
  for (const int n : {0, 1}) {
    Instruction *x = i.operand(n), *other = i.operand(1 - n);
    // The neutral element gives the other operand, the absorbing one itself.
    if (is_all_ones(x)) return is_and ? other : x;
    if (is_zero(x)) return is_and ? x : other;
    // and(x, and(x, y)), and(x, or(x, y))
    if (is(x, i.opcode()) && (x->operand(0) == other || x->operand(1) == other)) return x;
    const Opcode dual = is_and ? Opcode::Or : Opcode::And;
    if (is(x, dual) && (x->operand(0) == other || x->operand(1) == other)) return other;
  }
  if (are_opposite(a, b)) return Make(i).integer(type, is_and ? 0 : -1, i.shape().dims());
  return nullptr;
}

Instruction* simplify_xor(Instruction& i) {
  Make make(i);
  if (i.operand(0) == i.operand(1)) return make.integer(i.shape().dtype(), 0, i.shape().dims());
  for (const int n : {0, 1}) {
    if (is_zero(i.operand(n))) return i.operand(1 - n);
    if (is_all_ones(i.operand(n))) return make.unary(Opcode::Not, i.operand(1 - n));
  }
  return nullptr;
}

// Of floats only = and != have an opposite: a NaN makes both < and >= false.
Instruction* simplify_not(Instruction& i) {
  Instruction* x = i.operand(0);
  if (is(x, Opcode::Not)) return x->operand(0);
  if (!is(x, Opcode::Compare) || !has_one_use(x)) return nullptr;
  const auto attr = x->attr<hlo::CompareAttr>();
  const bool is_equality = attr.direction == Direction::Eq || attr.direction == Direction::Ne;
  if (attr.type == hlo::Comparison::Float && !is_equality) return nullptr;
  Instruction* result = Make(i).op(Opcode::Compare, i.shape(), {x->operand(0), x->operand(1)});
  result->mutable_attr<hlo::CompareAttr>() = {opposite(attr.direction), attr.type};
  return result;
}

// What a compare of x with x says.
std::optional<bool> reflexive(const Instruction& i) {
  const auto attr = i.attr<hlo::CompareAttr>();
  if (i.operand(0) != i.operand(1) || attr.type == hlo::Comparison::Float) return std::nullopt;
  return attr.direction == Direction::Eq || attr.direction == Direction::Ge || attr.direction == Direction::Le;
}

// A pred compared with a constant is it, its opposite, or a constant: which, by what it says for false and for true.
Instruction* by_cases(Make& make, Instruction* p, bool for_false, bool for_true) {
  if (for_false == for_true) return make.integer(DType::Pred, for_true, p->shape().dims());
  return for_true ? p : make.unary(Opcode::Not, p);
}

bool holds(Direction d, std::int64_t a, std::int64_t b, bool is_unsigned) {
  const auto less = is_unsigned ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
  switch (d) {
    case Direction::Eq: return a == b;
    case Direction::Ne: return a != b;
    case Direction::Lt: return less;
    case Direction::Ge: return !less;
    case Direction::Le: return less || a == b;
    case Direction::Gt: return !less && a != b;
  }
  return false;
}

// The two values of an integer that is made of a pred: convert(p), select(p, a, b).
struct Cases {
  Instruction* p;
  std::int64_t for_false, for_true;
};
std::optional<Cases> cases_of(Instruction* i) {
  if (i->shape().dtype() == DType::Pred) return Cases{i, 0, 1};
  if (is(i, Opcode::Convert) && i->operand(0)->shape().dtype() == DType::Pred && bit_width(i->shape().dtype()) > 1)
    return Cases{i->operand(0), 0, 1};
  if (!is(i, Opcode::Select) || !same_dims(i->operand(0)->shape(), i->shape())) return std::nullopt;
  const auto t = constant_integer(i->operand(1)), f = constant_integer(i->operand(2));
  if (!t || !f) return std::nullopt;
  return Cases{i->operand(0), *f, *t};
}

}  // namespace

Instruction* logic(Instruction& i) {
  switch (i.opcode()) {
    case Opcode::And:
    case Opcode::Or: return simplify_and_or(i);
    case Opcode::Xor: return simplify_xor(i);
    case Opcode::Not: return simplify_not(i);
    default: return nullptr;
  }
}

Instruction* comparison(Instruction& i) {
  if (!is(&i, Opcode::Compare)) return nullptr;
  Make make(i);
  if (const auto known = reflexive(i)) return make.integer(DType::Pred, *known, i.shape().dims());
  const DType type = i.operand(0)->shape().dtype();
  if (!is_integral(type) && type != DType::Pred) return nullptr;
  const auto direction = i.attr<hlo::CompareAttr>().direction;
  const bool as_unsigned = !is_signed(type);
  for (const int n : {0, 1}) {
    const auto constant = constant_integer(i.operand(1 - n));
    const auto cases = cases_of(i.operand(n));
    if (!constant || !cases) continue;
    const auto says = [&](std::int64_t v) {
      return n == 0 ? holds(direction, v, *constant, as_unsigned) : holds(direction, *constant, v, as_unsigned);
    };
    return by_cases(make, cases->p, says(cases->for_false), says(cases->for_true));
  }
  return nullptr;
}

}  // namespace hloom::passes::rules
