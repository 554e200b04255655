// Gather (hlo-ops 6.3): for each place of the batch, a window of the operand whose start the indices give, clamped.

#include <algorithm>

#include "interp/index.h"
#include "interp/index_vectors.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::GatherAttr;
using hlo::Literal;

IndexVectors vectors_of(const Call& call) {
  const auto& attr = call.instruction.attr<GatherAttr>();
  return IndexVectors(call.array(1), attr.index_vector_dim, attr.start_index_map, attr.operand_batching_dims,
                      attr.start_indices_batching_dims);
}

}  // namespace

Expected<Value> gather(const Call& call) {
  const auto& attr = call.instruction.attr<GatherAttr>();
  const Dims& dims = call.dims(0);
  const IndexVectors vectors = vectors_of(call);
  Literal result(call.shape);
  const Dims strides = row_major(call.shape.dims()), from_strides = row_major(dims);
  const WindowDims places(call.shape.rank(), attr.offset_dims, call.array(0).shape().rank(), attr.collapsed_slice_dims,
                          attr.operand_batching_dims);
  // The window: its sizes, and its strides in operand and result, over the operand's dimensions that have a place.
  Dims sizes;
  Strided from, to;
  for (std::size_t w = 0; w < places.window.size(); ++w) {
    const auto operand_dim = static_cast<std::size_t>(places.operand[w]);
    sizes.push_back(attr.slice_sizes[operand_dim]);
    from.strides.push_back(from_strides[operand_dim]);
    to.strides.push_back(strides[static_cast<std::size_t>(places.window[w])]);
  }
  if (product(call.shape.dims()) == 0) return Value(std::move(result));
  Dims batch(places.batch.size(), 0);
  do {
    Dims start = vectors.start(batch, dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d)
      start[d] = std::clamp<std::int64_t>(start[d], 0, dims[d] - attr.slice_sizes[d]);
    from.offset = position(start, from_strides);
    to.offset = 0;
    for (std::size_t b = 0; b < batch.size(); ++b)
      to.offset += batch[b] * strides[static_cast<std::size_t>(places.batch[b])];
    copy_box(result.mutable_bytes().data(), to, call.array(0).bytes().data(), from, sizes,
             byte_width(call.shape.dtype()));
  } while (next(batch, vectors.batch_sizes()));
  return Value(std::move(result));
}

}  // namespace hloom::interp
