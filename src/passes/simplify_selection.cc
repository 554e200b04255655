#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

// select(p, select(p, a, b), c): the inner one always takes a.
Instruction* inner_choice(Instruction& i) {
  Instruction *p = i.operand(0), *a = i.operand(1), *b = i.operand(2);
  const auto selects_by_p = [&](const Instruction* x) { return is(x, Opcode::Select) && x->operand(0) == p; };
  Make make(i);
  if (selects_by_p(a)) return make.select(p, a->operand(1), b);
  if (selects_by_p(b)) return make.select(p, a, b->operand(2));
  return nullptr;
}

// Of preds a select is and, or, not.
Instruction* select_of_preds(Instruction& i) {
  Instruction *p = i.operand(0), *a = i.operand(1), *b = i.operand(2);
  if (i.shape().dtype() != DType::Pred || !same_dims(p->shape(), i.shape())) return nullptr;
  Make make(i);
  if (is_true(a) && is_false(b)) return p;
  if (is_false(a) && is_true(b)) return make.unary(Opcode::Not, p);
  if (is_false(b) || b == p) return make.binary(Opcode::And, p, a);
  if (is_true(a) || a == p) return make.binary(Opcode::Or, p, b);
  if (is_false(a)) return make.binary(Opcode::And, make.unary(Opcode::Not, p), b);
  if (is_true(b)) return make.binary(Opcode::Or, make.unary(Opcode::Not, p), a);
  return nullptr;
}

Instruction* simplify_select(Instruction& i) {
  Instruction *p = i.operand(0), *a = i.operand(1), *b = i.operand(2);
  if (a == b || is_true(p)) return a;
  if (is_false(p)) return b;
  if (is(p, Opcode::Not)) return Make(i).select(p->operand(0), b, a);
  if (Instruction* with = inner_choice(i)) return with;
  return select_of_preds(i);
}

}  // namespace

Instruction* selection(Instruction& i) { return is(&i, Opcode::Select) ? simplify_select(i) : nullptr; }

}  // namespace hloom::passes::rules
