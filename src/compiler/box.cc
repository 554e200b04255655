#include "compiler/box.h"

#include "interp/index.h"

namespace hloom::compiler {

using hlo::Literal;

std::int64_t Box::num_elements() const { return interp::product(size); }

std::string to_string(const Box& box) {
  std::string text = "[";
  for (std::size_t d = 0; d < box.start.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(box.start[d]) + ":" + std::to_string(box.start[d] + box.size[d]);
  return text + "]";
}

Box whole_box(const Shape& array) { return {hlo::Dims(array.dims().size(), 0), array.dims()}; }

Box within(const Box& inner, const Box& outer) {
  Box result = inner;
  for (std::size_t d = 0; d < outer.start.size(); ++d) result.start[d] -= outer.start[d];
  return result;
}

Shape resized(const Shape& shape, const hlo::Dims& size) {
  Shape result = shape;
  for (Shape& element : result.elements()) element = resized(element, size);
  for (std::size_t d = 0; shape.is_array() && d < size.size(); ++d) result.set_dim(static_cast<std::int64_t>(d), size[d]);
  return result;
}

Literal crop(const Literal& literal, const Box& box) {
  if (literal.is_tuple()) {
    std::vector<Literal> elements;
    for (const Literal& element : literal.elements()) elements.push_back(crop(element, box));
    return Literal::tuple(std::move(elements));
  }
  const hlo::Dims& dims = literal.shape().dims();
  if (box.size == dims) return literal;
  Literal result(resized(literal.shape(), box.size));
  if (result.num_elements() == 0) return result;
  interp::Strided from{0, interp::row_major(dims)};
  from.offset = interp::position(box.start, from.strides);
  interp::copy_box(result.mutable_bytes().data(), {0, interp::row_major(box.size)}, literal.bytes().data(), from, box.size,
                   byte_width(literal.dtype()));
  return result;
}

}  // namespace hloom::compiler
