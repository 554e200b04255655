#include "base/try.h"
#include "interp/index.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::Literal;

// The dimensions without the scanned one.
Shape slice_shape(const Shape& whole, std::size_t dimension) {
  Dims dims = whole.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dimension));
  return Shape::array(whole.dtype(), std::move(dims));
}

// Where slice i lies in the whole array, in the dimensions of the slice.
Strided place_of_slice(const Shape& whole, std::size_t dimension, std::int64_t i) {
  Strided at{0, row_major(whole.dims())};
  at.offset = i * at.strides[dimension];
  at.strides.erase(at.strides.begin() + static_cast<std::ptrdiff_t>(dimension));
  return at;
}

Literal slice_of(const Literal& whole, std::size_t dimension, std::int64_t i) {
  Literal slice(slice_shape(whole.shape(), dimension));
  copy_box(slice.mutable_bytes().data(), {0, row_major(slice.shape().dims())}, whole.bytes().data(),
           place_of_slice(whole.shape(), dimension, i), slice.shape().dims(), byte_width(whole.dtype()));
  return slice;
}

void put_slice(Literal& whole, std::size_t dimension, std::int64_t i, const Literal& slice) {
  copy_box(whole.mutable_bytes().data(), place_of_slice(whole.shape(), dimension, i), slice.bytes().data(),
           {0, row_major(slice.shape().dims())}, slice.shape().dims(), byte_width(whole.dtype()));
}

std::vector<Value> leaves_of(Value value) {
  if (!value.is_tuple()) return {std::move(value)};
  return value.elements();
}

}  // namespace

// to_apply(input slices …, carries …) = (output slices …, carries …), step by step along the dimension (hlo-ops 7.5).
Expected<Value> scan(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::ScanAttr>();
  const auto dimension = static_cast<std::size_t>(call.instruction.dimension(0));
  const std::int64_t num_inputs = call.num_operands() - attr.num_carries;
  const std::int64_t num_outputs =
      (call.shape.is_tuple() ? static_cast<std::int64_t>(call.shape.elements().size()) : 1) - attr.num_carries;
  std::vector<Value> carries(call.operands.begin() + num_inputs, call.operands.end());
  std::vector<Literal> outputs;
  for (std::int64_t i = 0; i < num_outputs; ++i)
    outputs.emplace_back(call.shape.is_tuple() ? call.shape.element(i) : call.shape);
  // Without inputs the outputs say how many steps there are.
  const Shape& scanned = num_inputs > 0 || outputs.empty() ? call.array(0).shape() : outputs[0].shape();
  const std::int64_t steps = num_inputs > 0 || !outputs.empty() ? scanned.dims()[dimension] : 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t i = attr.reverse ? steps - 1 - step : step;
    std::vector<Value> arguments;
    for (std::int64_t k = 0; k < num_inputs; ++k) arguments.emplace_back(slice_of(call.array(k), dimension, i));
    for (Value& carry : carries) arguments.push_back(std::move(carry));
    const std::vector<Value> results =
        leaves_of(TRY(call.machine.run(*call.instruction.to_apply(), std::move(arguments))));
    for (std::size_t k = 0; k < outputs.size(); ++k) put_slice(outputs[k], dimension, i, results[k].array());
    carries.assign(results.begin() + num_outputs, results.end());
  }
  std::vector<Value> results;
  for (Literal& output : outputs) results.emplace_back(std::move(output));
  results.insert(results.end(), carries.begin(), carries.end());
  if (!call.shape.is_tuple()) return results[0];
  return Value::tuple(std::move(results));
}

}  // namespace hloom::interp
