// Scatter (hlo-ops 6.4): the updates in row-major order, each applied to the element that its indices name.

#include <algorithm>

#include "base/try.h"
#include "interp/index.h"
#include "interp/index_vectors.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::ScatterAttr;

// The update's index taken apart: its place in the batch, and where its element lies from the window's start.
struct Split {
  const WindowDims& places;
  const Dims& strides;  // of the operand

  Dims batch(const Dims& update) const {
    Dims result;
    for (const std::int64_t d : places.batch) result.push_back(update[static_cast<std::size_t>(d)]);
    return result;
  }
  std::int64_t offset(const Dims& update) const {
    std::int64_t at = 0;
    for (std::size_t w = 0; w < places.window.size(); ++w)
      at += update[static_cast<std::size_t>(places.window[w])] * strides[static_cast<std::size_t>(places.operand[w])];
    return at;
  }
};

}  // namespace

Expected<Value> scatter(const Call& call) {
  const auto& attr = call.instruction.attr<ScatterAttr>();
  const std::int64_t n = call.num_operands() / 2;
  const Dims dims = call.dims(0), updates = call.dims(n + 1), strides = row_major(dims);
  const IndexVectors vectors(call.array(n), attr.index_vector_dim, attr.scatter_dims_to_operand_dims,
                             attr.input_batching_dims, attr.scatter_indices_batching_dims);
  const WindowDims places(static_cast<std::int64_t>(updates.size()), attr.update_window_dims,
                          static_cast<std::int64_t>(dims.size()), attr.inserted_window_dims, attr.input_batching_dims);
  const Split split{places, strides};
  Dims sizes(dims.size(), 1);  // of the window in the operand
  for (std::size_t w = 0; w < places.window.size(); ++w)
    sizes[static_cast<std::size_t>(places.operand[w])] = updates[static_cast<std::size_t>(places.window[w])];

  ScalarFunction& function = call.machine.scalar_function(*call.instruction.to_apply());
  std::vector<Literal> results;
  std::vector<std::byte*> base, out(static_cast<std::size_t>(n));
  std::vector<const std::byte*> in(static_cast<std::size_t>(2 * n));
  for (std::int64_t i = 0; i < n; ++i)
    results.push_back(std::move(call.operands[static_cast<std::size_t>(i)]).take_array());
  for (Literal& result : results) base.push_back(result.mutable_bytes().data());
  const std::int64_t count = product(updates);
  Dims update(updates.size(), 0);
  for (std::int64_t u = 0; u < count; ++u, next(update, updates)) {
    const Dims start = vectors.start(split.batch(update), dims.size());
    bool inside = true;
    for (std::size_t d = 0; d < dims.size(); ++d) inside &= start[d] >= 0 && start[d] <= dims[d] - sizes[d];
    if (!inside) continue;
    const std::int64_t at = position(start, strides) + split.offset(update);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::int64_t width = byte_width(results[k].dtype());
      in[k] = out[k] = base[k] + at * width;
      in[k + results.size()] = call.array(n + 1 + static_cast<std::int64_t>(k)).bytes().data() + u * width;
    }
    TRY(function(out.data(), in.data(), 1));
  }
  return tuple_unless_one(std::move(results));
}

}  // namespace hloom::interp
