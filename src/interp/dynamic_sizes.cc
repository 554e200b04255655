// Arrays that have run-time sizes (hlo-ops 11). An operation on such operands is run on arrays of just these sizes, so
// that what lies past them cannot count; its result is put into an array of the bound.

#include <algorithm>

#include "base/try.h"
#include "hlo/participants.h"
#include "hlo/permute_slices.h"
#include "interp/collective.h"
#include "interp/contraction.h"
#include "interp/index.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

// The array within one of the bound's sizes.
Value bounded(const Value& value, const Shape& bound) {
  if (value.is_tuple()) {
    std::vector<Value> elements;
    for (std::size_t i = 0; i < value.elements().size(); ++i)
      elements.push_back(bounded(value.elements()[i], bound.elements()[i]));
    return Value::tuple(std::move(elements));
  }
  const Literal& array = value.array();
  if (array.shape().dims() == bound.dims()) return value;
  Literal result(bound);
  const Dims& sizes = array.shape().dims();
  copy_box(result.mutable_bytes().data(), {0, row_major(bound.dims())}, array.bytes().data(), {0, row_major(sizes)},
           sizes, byte_width(array.dtype()));
  return Value(std::move(result), sizes);
}

Shape with_dims(const Shape& shape, Dims dims) { return Shape::array(shape.dtype(), std::move(dims)); }

// Sizes along which operands must agree: the smallest counts, and the others are cropped to it.
void agree(std::span<Value> operands, const Dims& sizes) {
  for (Value& operand : operands)
    if (!operand.is_tuple() && operand.array().shape().dims().size() == sizes.size())
      operand = Value(cropped(operand.array(), sizes));
}

Dims least(std::span<const Value> operands) {
  Dims sizes;
  for (const Value& operand : operands) {
    const Dims& dims = operand.array().shape().dims();
    if (sizes.size() < dims.size()) sizes = dims;
    for (std::size_t d = 0; d < dims.size(); ++d) sizes[d] = std::min(sizes[d], dims[d]);
  }
  return sizes;
}

Dims dims_of(const Value& value) { return value.array().shape().dims(); }

Dims dot_dims(const hlo::DotAttr& attr, std::span<Value> operands) {
  Dims lhs = dims_of(operands[0]), rhs = dims_of(operands[1]);
  const auto pair = [&](const Dims& a, const Dims& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::int64_t &x = lhs[static_cast<std::size_t>(a[i])], &y = rhs[static_cast<std::size_t>(b[i])];
      x = y = std::min(x, y);
    }
  };
  pair(attr.lhs_batch, attr.rhs_batch);
  pair(attr.lhs_contracting, attr.rhs_contracting);
  operands[0] = Value(cropped(operands[0].array(), lhs));
  operands[1] = Value(cropped(operands[1].array(), rhs));
  Dims result;
  for (const std::int64_t d : attr.lhs_batch) result.push_back(lhs[static_cast<std::size_t>(d)]);
  for (const std::int64_t d : other_dims(static_cast<std::int64_t>(lhs.size()), attr.lhs_batch, attr.lhs_contracting))
    result.push_back(lhs[static_cast<std::size_t>(d)]);
  for (const std::int64_t d : other_dims(static_cast<std::int64_t>(rhs.size()), attr.rhs_batch, attr.rhs_contracting))
    result.push_back(rhs[static_cast<std::size_t>(d)]);
  return result;
}

Dims concatenated_dims(const Instruction& i, std::span<Value> operands) {
  const auto along = static_cast<std::size_t>(i.dimension(0));
  Dims sizes = least(operands);
  std::int64_t total = 0;
  for (Value& operand : operands) {
    sizes[along] = dims_of(operand)[along];
    total += sizes[along];
    operand = Value(cropped(operand.array(), sizes));
  }
  sizes[along] = total;
  return sizes;
}

Dims padded_dims(const Instruction& i, Dims dims) {
  const auto& padding = i.attr<hlo::PadAttr>().dims;
  for (std::size_t d = 0; d < dims.size(); ++d)
    dims[d] = std::max<std::int64_t>(
        0, padding[d].low + padding[d].high + dims[d] + std::max<std::int64_t>(dims[d] - 1, 0) * padding[d].interior);
  return dims;
}

// The one dynamic dimension of the result takes what the others leave.
Dims reshaped_dims(const Instruction& i, std::int64_t count) {
  Dims dims = i.shape().dims();
  const std::int64_t inferred = i.attr<hlo::ReshapeAttr>().inferred_dimension;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    if (!i.shape().is_dynamic_dim(d) || (inferred >= 0 && d != inferred)) continue;
    dims[static_cast<std::size_t>(d)] = 1;
    const std::int64_t others = product(dims);
    dims[static_cast<std::size_t>(d)] = others == 0 ? 0 : count / others;
    break;
  }
  return dims;
}

// How many windows fit (hlo-ops 7.2).
Dims window_dims(const hlo::Window& window, Dims dims) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const hlo::WindowDim& w = window[d];
    const std::int64_t spread = dims[d] == 0 ? 0 : (dims[d] - 1) * w.lhs_dilate + 1;
    const std::int64_t room = spread + w.pad_low + w.pad_high - (w.size == 0 ? 0 : (w.size - 1) * w.rhs_dilate + 1);
    dims[d] = room < 0 ? 0 : room / w.stride + 1;
  }
  return dims;
}

// Sizes of the indices are the result's; windows are as they are.
Expected<Dims> gathered_dims(const Instruction& i, std::span<Value> operands) {
  if (dims_of(operands[0]) != i.operand(0)->shape().dims())
    return fail(Code::Unimplemented, i.name(), ": the interpreter does not gather from arrays with run-time sizes");
  const auto& attr = i.attr<hlo::GatherAttr>();
  const Dims indices = dims_of(operands[1]);
  Dims result = i.shape().dims();
  std::size_t next = 0;
  for (std::size_t d = 0; d < result.size(); ++d) {
    const auto& offsets = attr.offset_dims;
    if (std::find(offsets.begin(), offsets.end(), static_cast<std::int64_t>(d)) != offsets.end()) continue;
    if (static_cast<std::int64_t>(next) == attr.index_vector_dim) ++next;
    result[d] = indices[next++];
  }
  return result;
}

// A part of a dynamic dimension has its own fixed size, and zeros past the run-time size; a whole one keeps it.
Expected<Value> sliced(Machine& machine, const Instruction& i, const Value& cropped_operand) {
  std::vector<Value> whole = {Value(bounded(cropped_operand, i.operand(0)->shape()).array())};
  Value result = TRY(machine.evaluate_static(i, with_dims(i.shape(), i.shape().dims()), whole));
  Dims sizes = i.shape().dims();
  for (std::int64_t d = 0; d < i.shape().rank(); ++d)
    if (i.shape().is_dynamic_dim(d)) sizes[static_cast<std::size_t>(d)] = dims_of(cropped_operand)[static_cast<std::size_t>(d)];
  return Value(result.array(), std::move(sizes));
}

Dims convolved_dims(const hlo::ConvolutionAttr& attr, const Shape& bound, std::span<Value> operands) {
  const hlo::ConvolutionDims& dims = attr.dims;
  Dims input = dims_of(operands[0]), kernel = dims_of(operands[1]), result = bound.dims();
  const auto at = [](Dims& of, std::int64_t d) -> std::int64_t& { return of[static_cast<std::size_t>(d)]; };
  if (attr.feature_groups == 1 && attr.batch_groups == 1) {
    at(input, dims.input_feature) = at(kernel, dims.kernel_input) =
        std::min(at(input, dims.input_feature), at(kernel, dims.kernel_input));
    at(result, dims.output_feature) = at(kernel, dims.kernel_output);
  }
  if (attr.batch_groups == 1) at(result, dims.output_batch) = at(input, dims.input_batch);
  Dims spatial;
  for (const std::int64_t d : dims.input_spatial) spatial.push_back(at(input, d));
  spatial = window_dims(attr.window, std::move(spatial));
  for (std::size_t k = 0; k < spatial.size(); ++k) at(result, dims.output_spatial[k]) = spatial[k];
  operands[0] = Value(cropped(operands[0].array(), input));
  operands[1] = Value(cropped(operands[1].array(), kernel));
  return result;
}

// As many updates as there are both of them and of index vectors.
void agree_on_updates(const hlo::ScatterAttr& attr, Value& indices, std::span<Value> updates) {
  Dims vectors = dims_of(indices);
  const auto walk = [&](const Dims& dims, const auto& f) {
    std::size_t next = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const auto& windows = attr.update_window_dims;
      if (std::find(windows.begin(), windows.end(), static_cast<std::int64_t>(d)) != windows.end()) continue;
      if (static_cast<std::int64_t>(next) == attr.index_vector_dim) ++next;
      f(d, next++);
    }
  };
  for (const Value& update : updates) {
    const Dims& dims = dims_of(update);
    walk(dims, [&](std::size_t d, std::size_t v) { vectors[v] = std::min(vectors[v], dims[d]); });
  }
  indices = Value(cropped(indices.array(), vectors));
  for (Value& update : updates) {
    Dims dims = dims_of(update);
    walk(Dims(dims), [&](std::size_t d, std::size_t v) { dims[d] = vectors[v]; });
    update = Value(cropped(update.array(), dims));
  }
}

Shape scattered_shape(const Instruction& i, std::span<Value> operands) {
  const std::size_t n = operands.size() / 2;
  agree_on_updates(i.attr<hlo::ScatterAttr>(), operands[n], operands.subspan(n + 1));
  if (!i.shape().is_tuple()) return with_dims(i.shape(), dims_of(operands[0]));
  std::vector<Shape> elements;
  for (std::size_t k = 0; k < n; ++k) elements.push_back(with_dims(i.shape().elements()[k], dims_of(operands[k])));
  return Shape::tuple(std::move(elements));
}

// A transform's own dimensions are whole; those before are how many there are.
Expected<Dims> transformed_dims(const Instruction& i, Dims dims) {
  Dims result = i.shape().dims();
  const std::size_t batch = dims.size() - i.attr<hlo::FftAttr>().length.size();
  for (std::size_t d = batch; d < dims.size(); ++d)
    if (dims[d] != i.operand(0)->shape().dims()[d])
      return fail(Code::Unimplemented, i.name(), ": the interpreter does not transform dimensions with run-time sizes");
  std::copy_n(dims.begin(), batch, result.begin());
  return result;
}

Dims solved_dims(std::span<Value> operands) {
  Dims a = dims_of(operands[0]), b = dims_of(operands[1]);
  for (std::size_t d = 0; d + 2 < b.size(); ++d) a[d] = b[d] = std::min(a[d], b[d]);
  operands[0] = Value(cropped(operands[0].array(), a));
  operands[1] = Value(cropped(operands[1].array(), b));
  return b;
}

// Features are whole; of x and its gradient, if there is one, the smaller size counts.
Expected<Dims> normalized_dims(const Instruction& i, std::span<Value> operands) {
  Dims sizes = dims_of(operands[0]);
  if (i.opcode() == Opcode::BatchNormGrad) {
    Value pair[] = {operands[0], operands[4]};
    sizes = least(pair);
    operands[0] = Value(cropped(operands[0].array(), sizes));
    operands[4] = Value(cropped(operands[4].array(), sizes));
  }
  const std::int64_t feature = i.attr<hlo::BatchNormAttr>().feature_index, features = i.operand(0)->shape().dim(feature);
  const bool whole = std::all_of(operands.begin() + 1, operands.end(), [&](const Value& operand) {
    return dims_of(operand).size() > 1 || dims_of(operand)[0] == features;
  });
  if (!whole || sizes[static_cast<std::size_t>(feature)] != features)
    return fail(Code::Unimplemented, i.name(), ": the interpreter does not normalize features of a run-time size");
  return sizes;
}

// Windows of one element are the element.
Expected<Dims> selected_dims(const Instruction& i, std::span<Value> operands) {
  const Dims sizes = least(operands.first(2));
  const auto& window = i.attr<hlo::WindowAttr>().window;
  Dims source = dims_of(operands[1]);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (window[d] == hlo::WindowDim()) {
      source[d] = sizes[d];
    } else if (dims_of(operands[0])[d] != i.operand(0)->shape().dims()[d] || source[d] != i.operand(1)->shape().dims()[d]) {
      return fail(Code::Unimplemented, i.name(), ": the interpreter does not select from windows of run-time sizes");
    }
  }
  Dims operand = dims_of(operands[0]);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (window[d] == hlo::WindowDim()) operand[d] = sizes[d];
  operands[0] = Value(cropped(operands[0].array(), operand));
  operands[1] = Value(cropped(operands[1].array(), source));
  return operand;
}

// The shape of the result for operands of their run-time sizes, which are cropped where they must agree.
Expected<Shape> run_time_shape(const Instruction& i, std::span<Value> operands) {
  const Shape& bound = i.shape();
  Dims dims = operands[0].is_tuple() ? Dims() : dims_of(operands[0]);
  switch (i.opcode()) {
    case Opcode::Reverse: return with_dims(bound, std::move(dims));
    case Opcode::Broadcast: {
      Dims result = bound.dims();
      for (std::size_t d = 0; d < dims.size(); ++d) result[static_cast<std::size_t>(i.dimensions()[d])] = dims[d];
      return with_dims(bound, std::move(result));
    }
    case Opcode::Transpose: {
      Dims result;
      for (const std::int64_t d : i.dimensions()) result.push_back(dims[static_cast<std::size_t>(d)]);
      return with_dims(bound, std::move(result));
    }
    case Opcode::Concatenate: return with_dims(bound, concatenated_dims(i, operands));
    case Opcode::Pad: return with_dims(bound, padded_dims(i, std::move(dims)));
    case Opcode::Reshape: return with_dims(bound, reshaped_dims(i, product(dims)));
    case Opcode::Dot: return with_dims(bound, dot_dims(i.attr<hlo::DotAttr>(), operands));
    case Opcode::Reduce: {
      const Dims sizes = least(operands.first(operands.size() / 2));
      agree(operands.first(operands.size() / 2), sizes);
      Dims result;
      for (const std::int64_t d : other_dims(static_cast<std::int64_t>(sizes.size()), i.dimensions(), {}))
        result.push_back(sizes[static_cast<std::size_t>(d)]);
      if (!bound.is_tuple()) return with_dims(bound, std::move(result));
      std::vector<Shape> elements;
      for (const Shape& element : bound.elements()) elements.push_back(with_dims(element, result));
      return Shape::tuple(std::move(elements));
    }
    case Opcode::ReduceWindow: {
      const std::span<Value> inputs = operands.first(operands.size() / 2);
      agree(inputs, least(inputs));
      const Dims result = window_dims(i.attr<hlo::WindowAttr>().window, dims_of(operands[0]));
      if (!bound.is_tuple()) return with_dims(bound, result);
      std::vector<Shape> elements;
      for (const Shape& element : bound.elements()) elements.push_back(with_dims(element, result));
      return Shape::tuple(std::move(elements));
    }
    case Opcode::Convolution: return with_dims(bound, convolved_dims(i.attr<hlo::ConvolutionAttr>(), bound, operands));
    case Opcode::Scatter: return scattered_shape(i, operands);
    case Opcode::Cholesky: return with_dims(bound, std::move(dims));
    case Opcode::TriangularSolve: return with_dims(bound, solved_dims(operands));
    case Opcode::BatchNormInference: return with_dims(bound, TRY(normalized_dims(i, operands)));
    case Opcode::BatchNormTraining:
    case Opcode::BatchNormGrad:
      return Shape::tuple({with_dims(bound.element(0), TRY(normalized_dims(i, operands))), bound.element(1), bound.element(2)});
    case Opcode::SelectAndScatter: return with_dims(bound, TRY(selected_dims(i, operands)));
    case Opcode::Fft: return with_dims(bound, TRY(transformed_dims(i, std::move(dims))));
    case Opcode::Gather: return with_dims(bound, TRY(gathered_dims(i, operands)));
    case Opcode::Sort: {
      const Dims sizes = least(operands);
      agree(operands, sizes);
      return bound;  // a sort's result takes the operands' shapes
    }
    default: break;
  }
  if (!hlo::is_elementwise(i.opcode()))
    return fail(Code::Unimplemented, i.name(), ": the interpreter does not run ", i.opcode(),
                " on operands with run-time sizes");
  const Dims sizes = least(operands);
  agree(operands, sizes);
  return with_dims(bound, sizes);
}

// Whether the result takes the members' sizes as they are: a dimension that is cut or joined along has its bound.
bool exchanges_sizes(const Instruction& i, std::span<const Value> operands) {
  switch (i.opcode()) {
    case Opcode::AllReduce:
    case Opcode::CollectiveBroadcast: return true;
    case Opcode::CollectivePermute: return !hlo::moves_slices(i);
    case Opcode::AllToAll:
      if (!i.attr<hlo::CollectiveAttr>().has_dimension) return false;
      break;
    case Opcode::AllGather:
    case Opcode::ReduceScatter: break;
    default: return false;
  }
  const auto along = static_cast<std::size_t>(i.dimension(0));
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (dims_of(operands[k])[along] != i.operand(static_cast<std::int64_t>(k))->shape().dims()[along]) return false;
  return true;
}

}  // namespace

Expected<Value> get_dimension_size(const Call& call) {
  const auto d = static_cast<std::size_t>(call.instruction.dimension(0));
  const Value& operand = call.operands[0];
  const std::int64_t size = operand.sizes().empty() ? call.dims(0)[d] : operand.sizes()[d];
  hlo::Literal result(call.shape);
  result.mutable_data<std::int32_t>()[0] = static_cast<std::int32_t>(size);
  return Value(std::move(result));
}

Expected<Value> set_dimension_size(const Call& call) {
  const auto d = static_cast<std::size_t>(call.instruction.dimension(0));
  const Value& operand = call.operands[0];
  const std::int64_t size = hlo::element_as_int64(call.array(1), 0);
  if (size < 0 || size > call.dims(0)[d])
    return wrong(call, "sets dimension ", d, " of ", to_string(operand.array().shape(), false), " to size ", size);
  Dims sizes = operand.sizes().empty() ? call.dims(0) : operand.sizes();
  sizes[d] = size;
  return Value(operand.array(), std::move(sizes));
}

Expected<Value> dynamic_reshape(const Call& call) {
  Dims sizes;
  for (std::int64_t i = 1; i < call.num_operands(); ++i) sizes.push_back(hlo::element_as_int64(call.array(i), 0));
  const Shape& bound = call.instruction.shape();
  std::int64_t count = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const auto dim = static_cast<std::int64_t>(d);
    if (sizes[d] < 0 || sizes[d] > bound.dim(dim) || (sizes[d] != bound.dim(dim) && !bound.is_dynamic_dim(dim)))
      return wrong(call, "size ", sizes[d], " of dimension ", d, " does not fit ", to_string(bound, false));
    count *= sizes[d];
  }
  if (count != call.array(0).num_elements())
    return wrong(call, "an array of ", call.array(0).num_elements(), " elements cannot have ", count);
  const auto bytes = call.array(0).bytes();
  return bounded(Value(Literal::from_bytes(with_dims(bound, sizes), {bytes.begin(), bytes.end()})), bound);
}

Expected<Value> evaluate_dynamic(Machine& machine, const Instruction& i, std::span<Value> operands) {
  for (Value& operand : operands)
    if (!operand.is_tuple() && operand.is_dynamic()) operand = Value(cropped(operand.array(), operand.sizes()));
  if (i.opcode() == Opcode::DynamicReshape) return machine.evaluate_static(i, i.shape(), operands);
  if (i.opcode() == Opcode::Slice) return sliced(machine, i, operands[0]);
  if (hlo::has_participants(i.opcode()) && exchanges_sizes(i, operands))
    return bounded(TRY(machine.evaluate_static(i, i.shape(), operands)), i.shape());
  const Shape shape = TRY(run_time_shape(i, operands));
  const Value result = TRY(machine.evaluate_static(i, shape, operands));
  return bounded(result, i.shape());
}

}  // namespace hloom::interp
