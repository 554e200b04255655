// Operations that move whole arrays, bits as they are (hlo-ops 6.1): each is a copy of boxes between strides.

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "interp/index.h"
#include "interp/kernel.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::Literal;

Strided whole(const Literal& array) { return {0, row_major(array.shape().dims())}; }

void copy_elements(Literal& to, const Strided& to_at, const Literal& from, const Strided& from_at, const Dims& sizes) {
  copy_box(to.mutable_bytes().data(), to_at, from.bytes().data(), from_at, sizes, byte_width(from.dtype()));
}

// Every element of the result comes from `from` at these strides.
Value taken(const Call& call, const Literal& from, const Strided& at) {
  Literal result(call.shape);
  copy_elements(result, whole(result), from, at, call.shape.dims());
  return result;
}

}  // namespace

// out[o] = in[o[dimensions[0]], o[dimensions[1]], …]
Expected<Value> broadcast(const Call& call) {
  Strided from{0, Dims(call.shape.dims().size(), 0)};
  const Dims strides = row_major(call.dims(0));
  for (std::size_t d = 0; d < strides.size(); ++d)
    from.strides[static_cast<std::size_t>(call.instruction.dimensions()[d])] = strides[d];
  return taken(call, call.array(0), from);
}

Expected<Value> reshape(const Call& call) {
  const auto bytes = call.array(0).bytes();
  return Value(Literal::from_bytes(call.shape, {bytes.begin(), bytes.end()}));
}

// Dimension i of the result is dimension dimensions[i] of the operand.
Expected<Value> transpose(const Call& call) {
  const Dims strides = row_major(call.dims(0));
  Strided from;
  for (const std::int64_t d : call.instruction.dimensions())
    from.strides.push_back(strides[static_cast<std::size_t>(d)]);
  return taken(call, call.array(0), from);
}

Expected<Value> reverse(const Call& call) {
  Strided from = whole(call.array(0));
  if (call.array(0).num_elements() == 0) return call.operands[0];
  for (const std::int64_t dimension : call.instruction.dimensions()) {
    const auto d = static_cast<std::size_t>(dimension);
    from.offset += (call.dims(0)[d] - 1) * from.strides[d];
    from.strides[d] = -from.strides[d];
  }
  return taken(call, call.array(0), from);
}

Expected<Value> concatenate(const Call& call) {
  const auto dimension = static_cast<std::size_t>(call.instruction.dimension(0));
  Literal result(call.shape);
  Strided to = whole(result);
  for (std::int64_t i = 0; i < call.num_operands(); ++i) {
    copy_elements(result, to, call.array(i), whole(call.array(i)), call.dims(i));
    to.offset += call.dims(i)[dimension] * to.strides[dimension];
  }
  return Value(std::move(result));
}

// Element i of a dimension goes to low + i·(interior + 1); those that land outside, where edges are negative, are
// dropped.
Expected<Value> pad(const Call& call) {
  const auto& padding = call.instruction.attr<hlo::PadAttr>().dims;
  Literal result(call.shape);
  fill(result.mutable_bytes().data(), result.num_elements(), call.array(1).bytes().data(),
       byte_width(call.shape.dtype()));
  Strided to = whole(result), from = whole(call.array(0));
  Dims sizes;
  for (std::size_t d = 0; d < padding.size(); ++d) {
    const std::int64_t step = padding[d].interior + 1, low = padding[d].low, out = call.shape.dims()[d];
    const std::int64_t first = low >= 0 ? 0 : (-low + step - 1) / step;
    const std::int64_t end = std::min(call.dims(0)[d], out - low <= 0 ? 0 : (out - low - 1) / step + 1);
    sizes.push_back(std::max<std::int64_t>(end - first, 0));
    from.offset += first * from.strides[d];
    to.offset += (low + first * step) * to.strides[d];
    to.strides[d] *= step;
  }
  copy_elements(result, to, call.array(0), from, sizes);
  return Value(std::move(result));
}

// out[o] = convert(o[iota_dimension])
Expected<Value> iota(const Call& call) {
  const auto dimension = static_cast<std::size_t>(call.instruction.iota_dimension());
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(call.shape.dims()[dimension]));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  Literal line(Shape::array(call.shape.dtype(), {call.shape.dims()[dimension]}));
  convert(line.mutable_bytes().data(), call.shape.dtype(), reinterpret_cast<const std::byte*>(numbers.data()),
          DType::S64, static_cast<std::int64_t>(numbers.size()));
  Strided from{0, Dims(call.shape.dims().size(), 0)};
  from.strides[dimension] = 1;
  return taken(call, line, from);
}

}  // namespace hloom::interp
