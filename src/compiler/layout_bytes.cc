#include "compiler/layout_bytes.h"

#include <cstring>
#include <vector>

#include "hlo/packing.h"
#include "interp/index.h"
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

// Elements in the order in which the layout has them, a byte each, to several a byte and back.
void pack(std::span<const std::byte> elements, int bits, std::span<std::byte> to) {
  const int per_byte = 8 / bits;
  const unsigned mask = (1u << bits) - 1;
  std::memset(to.data(), 0, to.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto n = static_cast<std::size_t>(per_byte);
    const unsigned element = std::to_integer<unsigned>(elements[i]) & mask;
    to[i / n] |= static_cast<std::byte>(element << hlo::packed_shift(static_cast<int>(i % n), bits));
  }
}

std::byte unpacked_element(std::span<const std::byte> from, std::size_t i, int bits, DType type) {
  const auto per_byte = static_cast<std::size_t>(8 / bits);
  const int shift = hlo::packed_shift(static_cast<int>(i % per_byte), bits);
  const auto element = static_cast<std::uint8_t>(std::to_integer<unsigned>(from[i / per_byte]) >> shift);
  const int unused = 8 - bit_width(type);
  const auto top = static_cast<std::uint8_t>(element << unused);
  if (is_signed(type)) return static_cast<std::byte>(static_cast<std::int8_t>(top) >> unused);
  return static_cast<std::byte>(top >> unused);
}

}  // namespace

void store_literal(const hlo::Literal& literal, const Shape& shape, std::span<std::byte> to) {
  const auto from = literal.bytes();
  if (from.empty()) return;
  if (const int bits = hlo::packed_bits(shape); bits != 0) {
    std::vector<std::byte> elements(from.size());
    store_literal(literal, hlo::unpacked(shape), elements);
    return pack(elements, bits, to);
  }
  if (shape.layout().is_descending()) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  for_each_element(shape, [&](std::int64_t logical, std::int64_t physical, std::size_t width) {
    std::memcpy(to.data() + physical, from.data() + logical, width);
  });
}

hlo::Literal load_literal(const Shape& shape, std::span<const std::byte> from) {
  if (const int bits = hlo::packed_bits(shape); bits != 0 && shape.num_elements() > 0) {
    std::vector<std::byte> elements(static_cast<std::size_t>(shape.num_elements()));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = unpacked_element(from, i, bits, shape.dtype());
    hlo::Literal literal = load_literal(hlo::unpacked(shape), elements);
    literal.set_shape_layout(shape.layout());
    return literal;
  }
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

hlo::Literal load_box(const Shape& shape, std::span<const std::byte> from, const Box& box) {
  if (hlo::packed_bits(shape) != 0) return crop(load_literal(shape, from), box);
  hlo::Literal literal(resized(shape, box.size));
  const auto to = literal.mutable_bytes();
  if (to.empty()) return literal;
  interp::Strided at{0, kernels::strides_of(shape)};
  at.offset = interp::position(box.start, at.strides);
  interp::copy_box(to.data(), {0, interp::row_major(box.size)}, from.data(), at, box.size, byte_width(shape.dtype()));
  return literal;
}

}  // namespace hloom::compiler
