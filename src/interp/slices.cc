#include <algorithm>

#include "interp/index.h"
#include "interp/ops.h"
#include "interp/starts.h"

namespace hloom::interp {
namespace {

using hlo::Literal;

// The start indices of a dynamic slice: one scalar a dimension from operand `first` on, or all in one vector.
Dims starts_of(const Call& call, std::int64_t first, std::size_t rank) {
  Dims starts;
  const bool vector = call.num_operands() == first + 1 && call.array(first).shape().rank() == 1;
  for (std::size_t d = 0; d < rank; ++d)
    starts.push_back(vector ? start_index(call.array(first), static_cast<std::int64_t>(d))
                            : start_index(call.array(first + static_cast<std::int64_t>(d)), 0));
  return starts;
}

// Where a window of these sizes begins once its start is clamped so that it lies inside.
Strided window(const Dims& dims, const Dims& sizes, const Dims& starts) {
  Strided at{0, row_major(dims)};
  for (std::size_t d = 0; d < dims.size(); ++d)
    at.offset += std::clamp<std::int64_t>(starts[d], 0, dims[d] - sizes[d]) * at.strides[d];
  return at;
}

}  // namespace

Expected<Value> slice(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::SliceAttr>();
  Strided from{0, row_major(call.dims(0))};
  for (std::size_t d = 0; d < from.strides.size(); ++d) {
    from.offset += attr.starts[d] * from.strides[d];
    from.strides[d] *= attr.strides[d];
  }
  Literal result(call.shape);
  copy_box(result.mutable_bytes().data(), {0, row_major(call.shape.dims())}, call.array(0).bytes().data(), from,
           call.shape.dims(), byte_width(call.shape.dtype()));
  return Value(std::move(result));
}

Expected<Value> dynamic_slice(const Call& call) {
  const Dims& sizes = call.instruction.attr<hlo::DynamicSliceAttr>().sizes;
  const Strided from = window(call.dims(0), sizes, starts_of(call, 1, sizes.size()));
  Literal result(call.shape);
  copy_box(result.mutable_bytes().data(), {0, row_major(sizes)}, call.array(0).bytes().data(), from, sizes,
           byte_width(call.shape.dtype()));
  return Value(std::move(result));
}

Expected<Value> dynamic_update_slice(const Call& call) {
  const Literal update = call.array(1);
  const Dims& sizes = update.shape().dims();
  const Strided to = window(call.dims(0), sizes, starts_of(call, 2, sizes.size()));
  Literal result = std::move(call.operands[0]).take_array();
  copy_box(result.mutable_bytes().data(), to, update.bytes().data(), {0, row_major(sizes)}, sizes,
           byte_width(update.dtype()));
  return Value(std::move(result));
}

}  // namespace hloom::interp
