#include <algorithm>

#include "hlo/reduce_order.h"
#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {

namespace {

// A sum from 0 on in its own type is never -0: 0 more changes nothing.
bool is_sum_from_zero(Instruction* x) {
  while (is(x, Opcode::Reshape) || is(x, Opcode::Bitcast)) x = x->operand(0);
  const DType type = x->shape().is_array() ? x->shape().dtype() : DType::Invalid;
  return is(x, Opcode::Reduce) && (type == DType::F32 || type == DType::F64) && x->num_operands() == 2 &&
         x->operand(0)->shape().dtype() == type && simple_combiner(*x->to_apply()) == Opcode::Add && is_number(x->operand(1), 0.0);
}

// Of several arrays, none of which has a say in another's result: each goes by its own order, and as fast as it can.
Instruction* reduces_apart(Instruction& i) {
  const std::int64_t count = i.num_operands() / 2;
  const auto op_of = [&](std::int64_t k) { return hlo::reducer_op(*i.to_apply(), k); };
  for (std::int64_t k = 0; k < count; ++k) {
    const DType type = i.operand(k)->shape().dtype();
    if (op_of(k) == Opcode::Tuple || i.operand(count + k)->shape().dtype() != type || i.shape().element(k).dtype() != type) return nullptr;
  }
  Make make(i);
  std::vector<Instruction*> results;
  const Dims dimensions(i.dimensions().begin(), i.dimensions().end());
  for (std::int64_t k = 0; k < count; ++k) results.push_back(make.reduce(op_of(k), i.operand(k), i.operand(count + k), dimensions));
  return make.tuple(results);
}

}  // namespace

// Each element has one value to combine with the initial one.
Instruction* reduce(Instruction& i) {
  if (i.num_operands() > 2 && i.shape().is_tuple()) return reduces_apart(i);
  if (i.num_operands() != 2 || !i.shape().is_array()) return nullptr;
  Instruction *x = i.operand(0), *initial = i.operand(1);
  Make make(i);
  if (x->shape().num_elements() == 0 && i.shape().num_elements() > 0)
    return make.broadcast_scalar(initial, i.shape().dims());
  const auto combiner = simple_combiner(*i.to_apply());
  const bool reduces_one = std::ranges::all_of(i.dimensions(), [&](std::int64_t d) { return x->shape().dim(d) == 1; });
  if (!combiner || !reduces_one || is_complex(x->shape().dtype()) || x->shape().dtype() != i.shape().dtype())
    return nullptr;
  if (*combiner == Opcode::Add && is_number(initial, 0.0) && is_sum_from_zero(x)) return make.reshape(x, i.shape().dims());
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

// The dimensions of the result that an operand of a dot without contraction has; empty if not in its order.
std::optional<Dims> result_dimensions(const Instruction* x, const Dims& batch, std::int64_t first_free) {
  Dims result;
  for (std::int64_t d = 0; d < x->shape().rank(); ++d) {
    const auto found = std::ranges::find(batch, d);
    result.push_back(found != batch.end() ? found - batch.begin() : first_free++);
  }
  return std::ranges::is_sorted(result) ? std::optional(result) : std::nullopt;
}

// Without contraction each element is one product, which fuses. Zero is added, as a sum starts with it: -0 becomes 0.
Instruction* product(Instruction& i) {
  const auto& a = i.attr<hlo::DotAttr>();
  Instruction *x = i.operand(0), *y = i.operand(1);
  const DType type = i.shape().dtype();
  if (!a.lhs_contracting.empty() || !a.algorithm.empty() || is_complex(type) || x->shape().dtype() != type ||
      y->shape().dtype() != type)
    return nullptr;
  const auto num_batch = static_cast<std::int64_t>(a.lhs_batch.size());
  const auto of_x = result_dimensions(x, a.lhs_batch, num_batch),
             of_y = result_dimensions(y, a.rhs_batch, x->shape().rank());
  if (!of_x || !of_y) return nullptr;
  Make make(i);
  const Dims& dims = i.shape().dims();
  x = make.broadcast(x, dims, *of_x);
  y = make.broadcast(y, dims, *of_y);
  Instruction* result = make.binary(type == DType::Pred ? Opcode::And : Opcode::Multiply, x, y);
  return is_floating(type) ? make.binary(Opcode::Add, result, make.splat(hlo::Literal(Shape::scalar(type)), dims))
                           : result;
}

}  // namespace

// A dot names its dimensions, so it reads through a transpose by other names.
Instruction* dot(Instruction& i) {
  if (i.num_operands() != 2) return nullptr;
  if (Instruction* one = product(i)) return one;
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
