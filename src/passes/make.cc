#include "passes/make.h"

#include <algorithm>
#include <cstring>

#include "hlo/identity.h"

namespace hloom::passes {
namespace {

bool is_identity(const Dims& dimensions) {
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    if (dimensions[d] != static_cast<std::int64_t>(d)) return false;
  return true;
}

hlo::Literal scalar_of_bits(DType type, std::uint64_t bits) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(byte_width(type)));
  std::memcpy(bytes.data(), &bits, bytes.size());
  return hlo::Literal::from_bytes(Shape::scalar(type), std::move(bytes));
}

// The low bits of `value` as an element is stored: sub-byte types in a byte, sign- or zero-extended.
hlo::Literal integer_literal(DType type, std::int64_t value) {
  const int unused = 64 - bit_width(type);
  const auto bits = static_cast<std::uint64_t>(value) << unused;
  const auto stored =
      is_signed(type) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> unused) : bits >> unused;
  return scalar_of_bits(type, stored);
}

}  // namespace

Instruction* Make::finish(Instruction* i) {
  if (like_.has_annotations() && !like_.annotations().metadata.empty())
    i->mutable_annotations().metadata = like_.annotations().metadata;
  i->set_place(like_.line(), like_.column());
  return i;
}

Instruction* Make::op(Opcode opcode, Shape shape, std::vector<Instruction*> operands) {
  return finish(computation_.add(opcode, std::move(shape), std::move(operands), like_.name()));
}

Instruction* Make::compare(hlo::Direction direction, Instruction* a, Instruction* b) {
  Instruction* i = op(Opcode::Compare, Shape::array(DType::Pred, a->shape().dims()), {a, b});
  const DType type = a->shape().dtype();
  const auto order = is_signed(type)                            ? hlo::Comparison::Signed
                     : is_unsigned(type) || type == DType::Pred ? hlo::Comparison::Unsigned
                                                                : hlo::Comparison::Float;
  i->mutable_attr<hlo::CompareAttr>() = {direction, order};
  return i;
}

Instruction* Make::convert(Instruction* a, DType type) {
  if (a->shape().dtype() == type) return a;
  Shape shape = a->shape();
  shape.set_dtype(type);
  return op(Opcode::Convert, std::move(shape), {a});
}

Instruction* Make::constant(hlo::Literal literal) { return finish(computation_.add_constant(std::move(literal))); }

Instruction* Make::integer(DType type, std::int64_t value, const Dims& dims) {
  return splat(integer_literal(type, value), dims);
}

Instruction* Make::identity(Opcode combine, DType type) {
  if (is_complex(type) && combine == Opcode::Add) {
    const DType part = type == DType::C64 ? DType::F32 : DType::F64;
    Instruction* zero = identity(combine, part);
    return op(Opcode::Complex, Shape::scalar(type), {zero, zero});
  }
  if (!hlo::has_identity(combine, type)) return nullptr;
  return constant(scalar_of_bits(type, hlo::identity_bits(combine, type)));
}

Instruction* Make::splat(hlo::Literal scalar, const Dims& dims) {
  return broadcast_scalar(constant(std::move(scalar)), dims);
}

Instruction* Make::reshape(Instruction* a, const Dims& dims) {
  if (a->shape().dims() == dims) return a;
  return op(Opcode::Reshape, Shape::array(a->shape().dtype(), dims), {a});
}

Instruction* Make::broadcast(Instruction* a, const Dims& result_dims, const Dims& dimensions) {
  if (a->shape().dims() == result_dims && is_identity(dimensions)) return a;
  Instruction* i = op(Opcode::Broadcast, Shape::array(a->shape().dtype(), result_dims), {a});
  i->set_dimensions(dimensions);
  return i;
}

Instruction* Make::transpose(Instruction* a, const Dims& permutation) {
  if (is_identity(permutation)) return a;
  Dims dims;
  for (const std::int64_t d : permutation) dims.push_back(a->shape().dim(d));
  Instruction* i = op(Opcode::Transpose, Shape::array(a->shape().dtype(), std::move(dims)), {a});
  i->set_dimensions(permutation);
  return i;
}

Instruction* Make::slice(Instruction* a, hlo::SliceAttr attr) {
  Dims dims;
  for (std::size_t d = 0; d < attr.starts.size(); ++d)
    dims.push_back((attr.limits[d] - attr.starts[d] + attr.strides[d] - 1) / attr.strides[d]);
  if (dims == a->shape().dims()) return a;
  Instruction* i = op(Opcode::Slice, Shape::array(a->shape().dtype(), std::move(dims)), {a});
  i->mutable_attr<hlo::SliceAttr>() = std::move(attr);
  return i;
}

Instruction* Make::pad(Instruction* a, Instruction* value, std::vector<hlo::PadDim> dims) {
  Dims padded = a->shape().dims();
  for (std::size_t d = 0; d < dims.size(); ++d)
    padded[d] += dims[d].low + dims[d].high + std::max<std::int64_t>(padded[d] - 1, 0) * dims[d].interior;
  if (padded == a->shape().dims() && std::ranges::all_of(dims, [](const hlo::PadDim& d) { return d.low == 0; })) return a;
  Instruction* i = op(Opcode::Pad, Shape::array(a->shape().dtype(), std::move(padded)), {a, value});
  i->mutable_attr<hlo::PadAttr>().dims = std::move(dims);
  return i;
}

Instruction* Make::dynamic_slice(Instruction* a, const std::vector<Instruction*>& starts, const Dims& sizes) {
  if (sizes == a->shape().dims()) return a;
  std::vector<Instruction*> operands = {a};
  operands.insert(operands.end(), starts.begin(), starts.end());
  Instruction* i = op(Opcode::DynamicSlice, Shape::array(a->shape().dtype(), sizes), std::move(operands));
  i->mutable_attr<hlo::DynamicSliceAttr>().sizes = sizes;
  return i;
}

Instruction* Make::dynamic_update_slice(Instruction* base, Instruction* update,
                                        const std::vector<Instruction*>& starts) {
  if (base->shape().dims() == update->shape().dims()) return update;
  std::vector<Instruction*> operands = {base, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op(Opcode::DynamicUpdateSlice, base->shape(), std::move(operands));
}

Instruction* Make::iota(DType type, const Dims& dims, std::int64_t dimension) {
  Instruction* i = op(Opcode::Iota, Shape::array(type, dims), {});
  i->mutable_attr<hlo::IotaAttr>().dimension = dimension;
  return i;
}

Instruction* Make::reduce(Opcode opcode, Instruction* a, Instruction* initial, const Dims& dimensions) {
  Dims kept;
  for (std::int64_t d = 0; d < a->shape().rank(); ++d)
    if (std::ranges::find(dimensions, d) == dimensions.end()) kept.push_back(a->shape().dim(d));
  const DType type = a->shape().dtype();
  Instruction* i = op(Opcode::Reduce, Shape::array(type, std::move(kept)), {a, initial});
  i->set_dimensions(dimensions);
  i->set_called({add_combiner(computation_.module(), opcode, type)});
  return i;
}

Instruction* Make::element(Instruction* tuple, std::int64_t index) {
  if (is(tuple, Opcode::Tuple)) return tuple->operand(index);
  for (Instruction* user : tuple->users())
    if (is(user, Opcode::GetTupleElement) && user->tuple_index() == index) return user;
  return finish(computation_.add_get_tuple_element(tuple, index));
}

Instruction* Make::tuple(const std::vector<Instruction*>& elements) {
  return finish(computation_.add_tuple(elements, like_.name()));
}

Instruction* Make::zeros(const Shape& shape) {
  if (shape.is_token()) return op(Opcode::AfterAll, shape, {});
  if (shape.is_array()) return splat(hlo::Literal(Shape::scalar(shape.dtype())), shape.dims());
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) elements.push_back(zeros(element));
  return tuple(elements);
}

hlo::Computation* add_combiner(hlo::Module& module, Opcode opcode, DType type) {
  hlo::Computation* c = module.add_computation(std::string(hlo::name(opcode)) + "_" + std::string(name(type)));
  Instruction* a = c->add_parameter(0, Shape::scalar(type), "a");
  Instruction* b = c->add_parameter(1, Shape::scalar(type), "b");
  c->set_root(c->add(opcode, Shape::scalar(type), {a, b}));
  return c;
}

std::int64_t first_start(const Instruction& i) { return i.opcode() == Opcode::DynamicUpdateSlice ? 2 : 1; }

bool has_scalar_starts(const Instruction& i) {
  const std::int64_t first = first_start(i);
  return i.num_operands() == first || i.operand(first)->shape().is_scalar();
}

std::vector<Instruction*> start_scalars(Instruction& i) {
  const std::int64_t first = first_start(i);
  if (has_scalar_starts(i)) return {i.operands().begin() + first, i.operands().end()};
  Make make(i);
  std::vector<Instruction*> scalars;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d)
    scalars.push_back(make.reshape(make.slice(i.operand(first), {{d}, {d + 1}, {1}}), {}));
  return scalars;
}

}  // namespace hloom::passes
