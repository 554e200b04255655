#include "passes/simplify_tuples.h"

#include "passes/match.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

// The tuple of which `i` holds all elements in order.
Instruction* reassembled(const Instruction& i) {
  if (i.num_operands() == 0 || !is(i.operand(0), Opcode::GetTupleElement)) return nullptr;
  Instruction* whole = i.operand(0)->operand(0);
  if (!(whole->shape() == i.shape())) return nullptr;
  for (std::int64_t n = 0; n < i.num_operands(); ++n) {
    const Instruction* e = i.operand(n);
    if (!is(e, Opcode::GetTupleElement) || e->operand(0) != whole || e->tuple_index() != n) return nullptr;
  }
  return whole;
}

Instruction* simplify(Instruction& i) {
  if (is(&i, Opcode::GetTupleElement) && is(i.operand(0), Opcode::Tuple)) return i.operand(0)->operand(i.tuple_index());
  if (is(&i, Opcode::Tuple)) return reassembled(i);
  return nullptr;
}

}  // namespace

Expected<Changed> simplify_tuples(hlo::Module& module) { return rewrite(module, simplify); }

}  // namespace hloom::passes
