#include <algorithm>

#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {

// Each element has one value to combine with the initial one.
Instruction* reduce(Instruction& i) {
  if (i.num_operands() != 2 || !i.shape().is_array()) return nullptr;
  Instruction *x = i.operand(0), *initial = i.operand(1);
  Make make(i);
  if (x->shape().num_elements() == 0 && i.shape().num_elements() > 0)
    return make.broadcast_scalar(initial, i.shape().dims());
  const auto combiner = simple_combiner(*i.to_apply());
  const bool reduces_one = std::ranges::all_of(i.dimensions(), [&](std::int64_t d) { return x->shape().dim(d) == 1; });
  if (!combiner || !reduces_one || is_complex(x->shape().dtype()) || x->shape().dtype() != i.shape().dtype())
    return nullptr;
  return make.binary(*combiner, make.broadcast_scalar(initial, i.shape().dims()), make.reshape(x, i.shape().dims()));
}

Instruction* sort(Instruction& i) {
  if (i.num_operands() != 1 || i.shape().dim(i.dimension(0)) > 1) return nullptr;
  return i.operand(0);
}

namespace {

// Where dimension d of a transpose stands in its operand.
Dims through(const Dims& dims, const Instruction* transpose) {
  Dims result;
  for (const std::int64_t d : dims) result.push_back(transpose->dimension(d));
  return result;
}

// The free dimensions, which the result lists in the operand's order, keep it.
bool keeps_free_order(const Instruction* transpose, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (std::int64_t d = 0; d < transpose->shape().rank(); ++d)
    if (std::ranges::find(batch, d) == batch.end() && std::ranges::find(contracting, d) == contracting.end())
      free.push_back(transpose->dimension(d));
  return std::ranges::is_sorted(free);
}

}  // namespace

// A dot names its dimensions, so it reads through a transpose by other names.
Instruction* dot(Instruction& i) {
  if (i.num_operands() != 2) return nullptr;
  auto& a = i.mutable_attr<hlo::DotAttr>();
  bool changed = false;
  for (const int n : {0, 1}) {
    Dims& batch = n == 0 ? a.lhs_batch : a.rhs_batch;
    Dims& contracting = n == 0 ? a.lhs_contracting : a.rhs_contracting;
    Instruction* x = i.operand(n);
    if (!is(x, Opcode::Transpose) || !is_plain(x->operand(0)->shape()) || !keeps_free_order(x, batch, contracting))
      continue;
    batch = through(batch, x);
    contracting = through(contracting, x);
    i.replace_operand(n, x->operand(0));
    changed = true;
  }
  return changed ? &i : nullptr;
}

Instruction* dimension_size(Instruction& i) {
  return Make(i).integer(DType::S32, i.operand(0)->shape().dim(i.dimension(0)));
}

}  // namespace hloom::passes::rules
