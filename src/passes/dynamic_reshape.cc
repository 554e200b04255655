#include "passes/dynamic_reshape.h"

#include <algorithm>

namespace hloom::passes {
namespace {

Instruction* size_in(Make& make, const DimSizes& sizes, const Dims& dims, std::size_t d) {
  return sizes[d] != nullptr ? make.convert(sizes[d], DType::S64) : make.integer(DType::S64, dims[d]);
}

// Only the most major dimension of each side is dynamic, and all others are the same or static: then elements stand
// where they stood.
bool keeps_places(const DimSizes& from, const DimSizes& to) {
  const auto only_first = [](const DimSizes& sizes) {
    return std::all_of(sizes.begin() + (sizes.empty() ? 0 : 1), sizes.end(), [](const Instruction* s) { return s == nullptr; });
  };
  return only_first(from) && only_first(to);
}

}  // namespace

// Element o of the result is number L in row-major order of what counts there, and stands in x where L does in what counts
// of x.
Instruction* reshape_in_bounds(Make& make, Instruction* x, const DimSizes& from, const Dims& dims, const DimSizes& to) {
  const Dims x_dims = x->shape().dims();
  std::int64_t elements = 1, x_elements = 1;
  for (const std::int64_t d : dims) elements *= d;
  for (const std::int64_t d : x_dims) x_elements *= d;
  if (elements == x_elements && keeps_places(from, to)) return make.reshape(x, dims);
  if (elements == 0 || x_elements == 0) return make.zeros(Shape::array(x->shape().dtype(), dims));
  const Dims flat = {elements};
  const auto spread = [&](Instruction* scalar) { return make.broadcast_scalar(scalar, flat); };
  const auto number = [&](std::int64_t n) { return spread(make.integer(DType::S64, n)); };
  // L of each element.
  Instruction* rest = make.iota(DType::S64, flat, 0);
  Instruction* place = number(0);
  Instruction* step = number(1);
  for (std::size_t d = dims.size(); d-- > 0;) {
    Instruction* coordinate = make.binary(Opcode::Remainder, rest, number(dims[d]));
    rest = make.binary(Opcode::Divide, rest, number(dims[d]));
    place = make.binary(Opcode::Add, place, make.binary(Opcode::Multiply, coordinate, step));
    step = make.binary(Opcode::Multiply, step, spread(size_in(make, to, dims, d)));
  }
  // Its place in x.
  Instruction* at = number(0);
  std::int64_t stride = 1;
  for (std::size_t d = x_dims.size(); d-- > 0;) {
    Instruction* size = spread(make.binary(Opcode::Maximum, size_in(make, from, x_dims, d), make.integer(DType::S64, 1)));
    Instruction* coordinate = make.binary(Opcode::Remainder, place, size);
    place = make.binary(Opcode::Divide, place, size);
    at = make.binary(Opcode::Add, at, make.binary(Opcode::Multiply, coordinate, number(stride)));
    stride *= x_dims[d];
  }
  Instruction* line = make.reshape(x, {x_elements});
  Instruction* gathered = make.op(Opcode::Gather, Shape::array(x->shape().dtype(), flat), {line, make.reshape(at, {elements, 1})});
  auto& attr = gathered->mutable_attr<hlo::GatherAttr>();
  attr.collapsed_slice_dims = {0};
  attr.start_index_map = {0};
  attr.index_vector_dim = 1;
  attr.slice_sizes = {1};
  return make.reshape(gathered, dims);
}

Instruction* checked_size(Make& make, Instruction* size, std::int64_t least, std::int64_t most) {
  const auto known = constant_integer(size);
  if (known && *known >= least && *known <= most) return size;
  return checked_size(make, size, make.integer(DType::S32, least), make.integer(DType::S32, most));
}

Instruction* checked_size(Make& make, Instruction* size, Instruction* least, Instruction* most) {
  Instruction* call = make.op(Opcode::CustomCall, Shape::scalar(DType::S32), {size, least, most});
  call->mutable_attr<hlo::CustomCallAttr>().target = kCheckSize;
  call->mutable_attr<hlo::CustomCallAttr>().has_side_effect = true;
  return call;
}

}  // namespace hloom::passes
