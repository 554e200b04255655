// Reduce (hlo-ops 7.1). One walk over the operands in row-major order, so that each result sees its elements in that
// order; along the way the accumulators of all results stand side by side.

#include "base/try.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;

// Strides of the result along the operand's dimensions: 0 along those that are reduced.
Strided result_strides(const Call& call) {
  std::vector<bool> reduced(call.dims(0).size(), false);
  for (const std::int64_t d : call.instruction.dimensions()) reduced[static_cast<std::size_t>(d)] = true;
  Dims kept;
  for (std::size_t d = 0; d < reduced.size(); ++d)
    if (!reduced[d]) kept.push_back(call.dims(0)[d]);
  const Dims strides = row_major(kept);
  Strided result{0, Dims(reduced.size(), 0)};
  std::size_t k = 0;
  for (std::size_t d = 0; d < reduced.size(); ++d)
    if (!reduced[d]) result.strides[d] = strides[k++];
  return result;
}

const Shape& result_shape(const Call& call, std::int64_t i) {
  return call.shape.is_tuple() ? call.shape.element(i) : call.shape;
}

Literal sum_in_f64(const Call& call, const Strided& to) {
  const std::vector<double> x = widen<double>(call.array(0));
  const double init = widen<double>(call.array(1))[0];
  std::vector<double> sums(static_cast<std::size_t>(product(call.shape.dims())), init);
  const Strided from{0, row_major(call.dims(0))};
  walk<2>(call.dims(0), {to, from}, [&](const std::array<std::int64_t, 2>& at) {
    sums[static_cast<std::size_t>(at[0])] += x[static_cast<std::size_t>(at[1])];
  });
  return rounded(call.shape, sums);
}

}  // namespace

Expected<Value> reduce(const Call& call) {
  ScalarFunction& function = call.machine.scalar_function(*call.instruction.to_apply());
  const Strided to = result_strides(call);
  if (is_float_sum(function, call.machine.options())) return Value(sum_in_f64(call, to));
  const std::int64_t n = call.num_operands() / 2;
  std::vector<Literal> results, inputs;
  for (std::int64_t i = 0; i < n; ++i) {
    results.emplace_back(result_shape(call, i));
    const Literal init = as_type(call.array(n + i), results.back().dtype());
    fill(results.back().mutable_bytes().data(), results.back().num_elements(), init.bytes().data(),
         byte_width(init.dtype()));
    inputs.push_back(as_type(call.array(i), function.parameter_type(n + i)));
  }
  // Along an innermost dimension that stays, whole rows are applied at once.
  Dims sizes = call.dims(0);
  std::int64_t row = 1;
  Strided rows_to = to, rows_from{0, row_major(sizes)};
  if (!sizes.empty() && to.strides.back() == 1) {
    row = sizes.back();
    sizes.back() = row == 0 ? 0 : 1;
  }
  std::vector<std::byte*> base, out(static_cast<std::size_t>(n));
  for (Literal& result : results) base.push_back(result.mutable_bytes().data());
  std::vector<const std::byte*> in(static_cast<std::size_t>(2 * n));
  Expected<> good;
  walk<2>(sizes, {rows_to, rows_from}, [&](const std::array<std::int64_t, 2>& at) {
    for (std::size_t k = 0; k < results.size(); ++k) {
      in[k] = out[k] = base[k] + at[0] * byte_width(results[k].dtype());
      in[k + results.size()] = inputs[k].bytes().data() + at[1] * byte_width(inputs[k].dtype());
    }
    if (good) good = function(out.data(), in.data(), row);
  });
  TRY(std::move(good));
  return tuple_unless_one(std::move(results));
}

}  // namespace hloom::interp
