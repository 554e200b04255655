#include "interp/index.h"

namespace hloom::interp {
namespace {

template <std::size_t kWidth>
void copy_box_of(std::byte* to, const Strided& to_at, const std::byte* from, const Strided& from_at,
                 const Dims& sizes) {
  walk<2>(sizes, {to_at, from_at}, [&](const std::array<std::int64_t, 2>& at) {
    std::memcpy(to + at[0] * static_cast<std::int64_t>(kWidth), from + at[1] * static_cast<std::int64_t>(kWidth),
                kWidth);
  });
}

}  // namespace

Dims row_major(const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t d = dims.size(); d-- > 0; step *= dims[d]) strides[d] = step;
  return strides;
}

std::int64_t product(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

std::int64_t position(const Dims& index, const Dims& strides) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
  return at;
}

bool next(Dims& index, const Dims& sizes) {
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (++index[d] < sizes[d]) return true;
    index[d] = 0;
  }
  return false;
}

void copy_box(std::byte* to, const Strided& to_at, const std::byte* from, const Strided& from_at, const Dims& sizes,
              std::int64_t width) {
  switch (width) {
    case 1: return copy_box_of<1>(to, to_at, from, from_at, sizes);
    case 2: return copy_box_of<2>(to, to_at, from, from_at, sizes);
    case 4: return copy_box_of<4>(to, to_at, from, from_at, sizes);
    case 8: return copy_box_of<8>(to, to_at, from, from_at, sizes);
    case 16: return copy_box_of<16>(to, to_at, from, from_at, sizes);
    default: HLOOM_CHECK(!"an element's width");
  }
}

void fill(std::byte* to, std::int64_t count, const std::byte* element, std::int64_t width) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * width, element, static_cast<std::size_t>(width));
}

}  // namespace hloom::interp
