#include "compiler/layout_bytes.h"

#include <cstring>
#include <vector>

#include "kernels/builder.h"

namespace hloom::compiler {
namespace {

// Calls copy(row-major offset, offset by the layout) for each element, in bytes.
template <typename Copy>
void for_each_element(const Shape& shape, const Copy& copy) {
  const std::int64_t width = byte_width(shape.dtype());
  const std::vector<std::int64_t> strides = kernels::strides_of(shape);
  std::vector<std::int64_t> at(shape.dims().size());
  for (std::int64_t n = 0; n < shape.num_elements(); ++n) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    copy(n * width, offset * width, static_cast<std::size_t>(width));
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape.dim(static_cast<std::int64_t>(d))) break;
      at[d] = 0;
    }
  }
}

}  // namespace

void store_literal(const hlo::Literal& literal, const Shape& shape, std::span<std::byte> to) {
  const auto from = literal.bytes();
  if (from.empty()) return;
  if (shape.layout().is_descending()) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  for_each_element(shape, [&](std::int64_t logical, std::int64_t physical, std::size_t width) {
    std::memcpy(to.data() + physical, from.data() + logical, width);
  });
}

hlo::Literal load_literal(const Shape& shape, std::span<const std::byte> from) {
  hlo::Literal literal(shape);
  const auto to = literal.mutable_bytes();
  if (to.empty()) return literal;
  if (shape.layout().is_descending()) {
    std::memcpy(to.data(), from.data(), to.size());
    return literal;
  }
  for_each_element(shape, [&](std::int64_t logical, std::int64_t physical, std::size_t width) {
    std::memcpy(to.data() + logical, from.data() + physical, width);
  });
  return literal;
}

}  // namespace hloom::compiler
