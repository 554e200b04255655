// The custom calls that are something else by another name (hlo-ops 15.2).

#include "interp/custom_calls.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/try.h"
#include "interp/ducc_fft.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "library/attributes.h"

namespace hloom::interp {
namespace {

using hlo::CustomCallAttr;
using hlo::Opcode;

// Annotations and requests that do not change the value.
bool is_marker(std::string_view target) {
  for (const std::string_view known : {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
                                       "annotate_device_placement", "MoveToHost", "MoveToDevice", "PinToDevice",
                                       "PinToDeviceSram"})
    if (target == known) return true;
  return target.starts_with("xla.sdy.");
}

Expected<Value> forward(const Call& call) {
  const auto n = static_cast<std::size_t>(call.num_operands());
  const bool many = call.shape.is_tuple() && n != 1;
  const std::size_t results = many ? call.shape.elements().size() : 1;
  bool same = n == results;
  for (std::size_t i = 0; i < n && same; ++i)
    same = compatible(call.instruction.operand(static_cast<std::int64_t>(i))->shape(),
                      many ? call.shape.elements()[i] : call.shape);
  if (!same)
    return fail(Code::Unimplemented, call.instruction.name(), ": ", call.instruction.attr<CustomCallAttr>().target,
                " that changes shapes needs a partitioner");
  return many ? tuple(call) : Expected<Value>(call.operands[0]);
}

// (size, least, most): what an expansion puts around a size at run time.
Expected<Value> check_size(const Call& call) {
  const std::int64_t size = hlo::element_as_int64(call.array(0), 0);
  const std::int64_t least = hlo::element_as_int64(call.array(1), 0), most = hlo::element_as_int64(call.array(2), 0);
  if (size < least || size > most) return wrong(call, "size ", size, " is not in [", least, ", ", most, "]");
  return call.operands[0];
}

// The first elements of the arrays sorted by the comparator.
Expected<Value> approx_top_k(const Call& call) {
  const std::int64_t dimension = TRY(approx_top_k_dimension(call.instruction));
  const std::size_t n = call.operands.size() / 2;
  const std::vector<hlo::Literal> sorted =
      TRY(sort_arrays(call.machine.scalar_function(*call.instruction.called(0)), call.operands.first(n), dimension));
  std::vector<Value> results;
  for (std::size_t k = 0; k < n; ++k) {
    const Shape& shape = call.shape.is_tuple() ? call.shape.element(static_cast<std::int64_t>(k)) : call.shape;
    hlo::Literal first(shape);
    copy_box(first.mutable_bytes().data(), {0, row_major(shape.dims())}, sorted[k].bytes().data(),
             {0, row_major(sorted[k].shape().dims())}, shape.dims(), byte_width(shape.dtype()));
    results.emplace_back(std::move(first));
  }
  return call.shape.is_tuple() ? Value::tuple(std::move(results)) : std::move(results[0]);
}

template <typename T>
void scale(hlo::Literal& literal, double factor) {
  const std::span<std::byte> bytes = literal.mutable_bytes();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    value *= static_cast<T>(factor);
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

Expected<Value> ducc_fft(const Call& call) {
  const auto what =
      read_ducc_fft(call.instruction, [&](std::int64_t k) -> Expected<hlo::Literal> { return call.array(k); });
  if (!what) return wrong(call, what.error().message());
  hlo::Module module("transform");
  hlo::Computation& computation = *module.add_computation("transform");
  hlo::Instruction* x = computation.add_parameter(0, call.array(1).shape());
  hlo::Instruction* transform = computation.add(Opcode::Fft, call.shape, {x});
  transform->mutable_attr<hlo::FftAttr>() = what->attr;
  const Value result = TRY(fft(Call{*transform, call.shape, call.operands.subspan(1, 1), call.machine}));
  if (what->factor == 1) return result;
  hlo::Literal scaled = result.array();
  if (real_type(scaled.dtype()) == DType::F64)
    scale<double>(scaled, what->factor);
  else
    scale<float>(scaled, what->factor);
  return Value(std::move(scaled));
}

bool depends_on(const hlo::Instruction& i, std::int64_t parameter) {
  if (i.opcode() == Opcode::Parameter) return i.parameter_number() == parameter;
  return std::ranges::any_of(i.operands(), [&](const hlo::Instruction* o) { return depends_on(*o, parameter); });
}

}  // namespace

Expected<bool> takes_largest(const hlo::Instruction& i) {
  if (i.annotations().backend_config.find("largest = false") != std::string::npos) return false;
  if (i.called().empty()) return true;
  const hlo::Instruction& root = *i.called(0)->root();
  if (root.opcode() == Opcode::Compare) {
    const bool swapped = depends_on(*root.operand(0), 1) && depends_on(*root.operand(1), 0);
    const hlo::Direction direction = root.attr<hlo::CompareAttr>().direction;
    if (direction == hlo::Direction::Gt || direction == hlo::Direction::Ge) return !swapped;
    if (direction == hlo::Direction::Lt || direction == hlo::Direction::Le) return swapped;
  }
  return fail(Code::Unimplemented, i.name(), ": TopK by the comparator ", i.called(0)->name());
}

Expected<std::int64_t> approx_top_k_dimension(const hlo::Instruction& i) {
  const auto expected = [&](const auto&... words) { return fail(Code::InvalidArgument, i.name(), ": ApproxTopK ", words...); };
  const std::int64_t arrays = i.num_operands() / 2;
  const std::int64_t results = i.shape().is_tuple() ? std::ssize(i.shape().elements()) : 1;
  if (arrays == 0 || i.num_operands() % 2 != 0 || results != arrays)
    return expected("takes arrays and as many scalars, and gives as many arrays");
  const auto attributes = library::parse_attributes(i.annotations().backend_config);
  const auto dimension = attributes ? attributes->integer("reduction_dim") : std::nullopt;
  if (!dimension) return expected("has no attribute reduction_dim");
  const Shape& first = i.operand(0)->shape();
  for (std::int64_t k = 0; k < arrays; ++k) {
    const Shape& from = i.operand(k)->shape();
    const Shape& to = i.shape().is_tuple() ? i.shape().element(k) : i.shape();
    if (!from.is_array() || !to.is_array() || !same_dims(from, first) || to.dtype() != from.dtype() ||
        to.rank() != from.rank() || *dimension < 0 || *dimension >= from.rank())
      return expected("gives of ", from, " the first elements of dimension ", *dimension, ", not ", to);
    for (std::int64_t d = 0; d < from.rank(); ++d)
      if (d == *dimension ? to.dim(d) > from.dim(d) : to.dim(d) != from.dim(d))
        return expected("gives of ", from, " the first elements of dimension ", *dimension, ", not ", to);
  }
  const bool compares = i.called().size() == 1 && std::ssize(i.called(0)->parameters()) == 2 * arrays &&
                        i.called(0)->root()->shape().dtype() == DType::Pred && i.called(0)->root()->shape().rank() == 0;
  if (!compares) return expected("takes one comparator of ", 2 * arrays, " scalars");
  for (const hlo::Instruction* p : i.called(0)->parameters())
    if (p->shape().rank() != 0 || p->shape().dtype() != i.operand(p->parameter_number() / 2)->shape().dtype())
      return expected("takes a comparator of its arrays' elements, two of each");
  return *dimension;
}

Expected<Value> custom_call(const Call& call) {
  const std::string& target = call.instruction.attr<CustomCallAttr>().target;
  if (is_marker(target)) return forward(call);
  if (target == "Pin" || target == "Unpin") return call.operands[0];
  if (target == "CreateBuffer") return Value(hlo::Literal(call.shape.element(0)));
  if (target == "hloom.check_size") return check_size(call);
  if (target == "ApproxTopK") return approx_top_k(call);
  if (is_ducc_fft(target)) return ducc_fft(call);
  if (target == "TopK") {
    const bool largest = TRY(takes_largest(call.instruction));
    return top_k(call.array(0), call.shape.element(0).dims().back(), largest, call.shape);
  }
  if (auto transferred = host_transfer(call)) return *std::move(transferred);
  if (auto transferred = device_transfer(call)) return *std::move(transferred);
  return routine_call(call);
}

}  // namespace hloom::interp
