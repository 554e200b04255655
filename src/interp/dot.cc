// Dots (hlo-ops 8.1 to 8.3): the contracted products summed in a wider type, rounded once to the result's.

#include <algorithm>

#include "base/try.h"
#include "interp/contraction.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::DotAttr;
using hlo::Literal;

bool contains(const Dims& list, std::int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

Dims joined(const Dims& a, const Dims& b, const Dims& c) {
  Dims result = a;
  result.insert(result.end(), b.begin(), b.end());
  result.insert(result.end(), c.begin(), c.end());
  return result;
}

// The dimension of an operand as it lies in the result of a plain dot is batch, lhs free, rhs free, each in order.
struct Plan {
  MatrixSizes sizes;
  Dims lhs, rhs;  // dimensions in the order batch, free, contracting; batch, contracting, free

  Plan(const DotAttr& attr, const Dims& lhs_dims, const Dims& rhs_dims) {
    const Dims lhs_free = other_dims(static_cast<std::int64_t>(lhs_dims.size()), attr.lhs_batch, attr.lhs_contracting);
    const Dims rhs_free = other_dims(static_cast<std::int64_t>(rhs_dims.size()), attr.rhs_batch, attr.rhs_contracting);
    lhs = joined(attr.lhs_batch, lhs_free, attr.lhs_contracting);
    rhs = joined(attr.rhs_batch, attr.rhs_contracting, rhs_free);
    sizes = {product_of(lhs_dims, attr.lhs_batch), product_of(lhs_dims, lhs_free),
             product_of(lhs_dims, attr.lhs_contracting), product_of(rhs_dims, rhs_free)};
  }
};

Literal plain_dot(const DotAttr& attr, const Literal& lhs, const Literal& rhs, const Shape& shape) {
  const Plan plan(attr, lhs.shape().dims(), rhs.shape().dims());
  return with_wide(shape.dtype(), [&]<typename W>(W) {
    const std::vector<W> a = transposed<W>(lhs, plan.lhs), b = transposed<W>(rhs, plan.rhs);
    std::vector<W> out(static_cast<std::size_t>(product(shape.dims())));
    multiply_matrices(plan.sizes, a.data(), b.data(), out.data());
    return rounded(shape, out);
  });
}

}  // namespace

Dims other_dims(std::int64_t rank, const Dims& a, const Dims& b, const Dims& c) {
  Dims result;
  for (std::int64_t d = 0; d < rank; ++d)
    if (!contains(a, d) && !contains(b, d) && !contains(c, d)) result.push_back(d);
  return result;
}

std::int64_t product_of(const Dims& dims, const Dims& which) {
  std::int64_t count = 1;
  for (const std::int64_t d : which) count *= dims[static_cast<std::size_t>(d)];
  return count;
}

Expected<Value> dot(const Call& call) {
  if (call.num_operands() != 2)
    return fail(Code::Unimplemented, call.instruction.name(), ": the interpreter runs dots of two operands, not of ",
                call.num_operands());
  return Value(plain_dot(call.instruction.attr<DotAttr>(), call.array(0), call.array(1), call.shape));
}

// Each element of an operand times the element of its scale whose block it is in.
template <typename W>
std::vector<W> scaled(const Literal& operand, const Literal& scale) {
  std::vector<W> result = widen<W>(operand);
  const std::vector<W> factors = widen<W>(scale);
  const Dims &dims = operand.shape().dims(), &blocks = scale.shape().dims();
  const Dims strides = row_major(blocks);
  Dims index(dims.size(), 0);
  for (W& x : result) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < blocks.size(); ++d) at += index[d] / (dims[d] / blocks[d]) * strides[d];
    x = times(x, factors[static_cast<std::size_t>(at)]);
    next(index, dims);
  }
  return result;
}

// dot(lhs · its scales, rhs · its scales). The products of an element and its scale have at most 35 digits: no
// rounding.
Expected<Value> scaled_dot(const Call& call) {
  const auto scaled_operand = [&](std::int64_t i) {
    Shape wide = Shape::array(DType::F64, call.dims(i));
    return rounded(wide, scaled<double>(call.array(i), call.array(i + 2)));
  };
  return Value(plain_dot(call.instruction.attr<DotAttr>(), scaled_operand(0), scaled_operand(1), call.shape));
}

}  // namespace hloom::interp
