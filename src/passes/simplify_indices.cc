#include "passes/simplify_indices.h"

#include "passes/make.h"
#include "passes/ranges.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

std::optional<bool> decided(hlo::Direction direction, const Range& a, const Range& b) {
  using D = hlo::Direction;
  const auto opposite = [](std::optional<bool> answer) { return answer ? std::optional(!*answer) : answer; };
  switch (direction) {
    case D::Lt:
      if (a.high < b.low) return true;
      if (a.low >= b.high) return false;
      return std::nullopt;
    case D::Le:
      if (a.high <= b.low) return true;
      if (a.low > b.high) return false;
      return std::nullopt;
    case D::Gt: return decided(D::Lt, b, a);
    case D::Ge: return decided(D::Le, b, a);
    case D::Eq:
      if (a.low == a.high && a == b) return true;
      if (a.high < b.low || b.high < a.low) return false;
      return std::nullopt;
    case D::Ne: return opposite(decided(D::Eq, a, b));
  }
  return std::nullopt;
}

Instruction* simplify_compare(Instruction& i, const Ranges& ranges) {
  const auto a = ranges.of(i.operand(0)), b = ranges.of(i.operand(1));
  if (!a || !b) return nullptr;
  const auto answer = decided(i.attr<hlo::CompareAttr>().direction, *a, *b);
  return answer ? Make(i).integer(DType::Pred, *answer, i.shape().dims()) : nullptr;
}

Instruction* simplify_extreme(Instruction& i, const Ranges& ranges) {
  const auto a = ranges.of(i.operand(0)), b = ranges.of(i.operand(1));
  if (!a || !b) return nullptr;
  const bool is_max = is(&i, Opcode::Maximum);
  if (a->low >= b->high) return i.operand(is_max ? 0 : 1);
  if (b->low >= a->high) return i.operand(is_max ? 1 : 0);
  return nullptr;
}

Instruction* simplify_clamp(Instruction& i, const Ranges& ranges) {
  const auto low = ranges.of(i.operand(0)), x = ranges.of(i.operand(1)), high = ranges.of(i.operand(2));
  if (!low || !x || !high) return nullptr;
  if (x->low >= low->high && x->high <= high->low) return i.operand(1);
  return nullptr;
}

Instruction* simplify_remainder(Instruction& i, const Ranges& ranges) {
  const auto a = ranges.of(i.operand(0)), b = ranges.of(i.operand(1));
  return a && b && a->low >= 0 && a->high < b->low ? i.operand(0) : nullptr;
}

Instruction* simplify(Instruction& i, const Ranges& ranges) {
  if (!i.shape().is_array() || !is_plain(i)) return nullptr;
  switch (i.opcode()) {
    case Opcode::Compare: return simplify_compare(i, ranges);
    case Opcode::Maximum:
    case Opcode::Minimum: return simplify_extreme(i, ranges);
    case Opcode::Clamp: return simplify_clamp(i, ranges);
    case Opcode::Remainder: return simplify_remainder(i, ranges);
    default: return nullptr;
  }
}

}  // namespace

Expected<Changed> simplify_indices(hlo::Module& module) {
  const Ranges ranges(module);
  return rewrite(module, [&](Instruction& i) { return simplify(i, ranges); });
}

}  // namespace hloom::passes
