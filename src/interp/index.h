// Walking through arrays: strides, boxes, and the moving of bytes between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "hlo/attributes.h"

namespace hloom::interp {

using hlo::Dims;

/// Where element 0 of a box lies in an array, and how far apart neighbours are in each dimension, in elements.
struct Strided {
  std::int64_t offset = 0;
  Dims strides;
};

/// Strides of a dense row-major array.
Dims row_major(const Dims& dims);
/// The number of elements.
std::int64_t product(const Dims& dims);
/// The row-major position of `index`.
std::int64_t position(const Dims& index, const Dims& strides);

/// Calls f(offsets) for each element of a box of these sizes in row-major order, with the offset of that element in
/// each of N arrays.
template <std::size_t N, typename F>
void walk(const Dims& sizes, const std::array<Strided, N>& arrays, const F& f) {
  std::array<std::int64_t, N> at;
  for (std::size_t n = 0; n < N; ++n) at[n] = arrays[n].offset;
  const std::size_t rank = sizes.size();
  if (product(sizes) == 0) return;
  if (rank == 0) return f(at);
  std::array<std::int64_t, 64> index{};
  HLOOM_CHECK(rank <= index.size());
  const std::int64_t inner = sizes[rank - 1];
  for (;;) {
    for (std::int64_t i = 0; i < inner; ++i) {
      f(at);
      for (std::size_t n = 0; n < N; ++n) at[n] += arrays[n].strides[rank - 1];
    }
    for (std::size_t n = 0; n < N; ++n) at[n] -= inner * arrays[n].strides[rank - 1];
    std::size_t d = rank - 1;
    for (;;) {
      if (d == 0) return;
      --d;
      for (std::size_t n = 0; n < N; ++n) at[n] += arrays[n].strides[d];
      if (++index[d] < sizes[d]) break;
      for (std::size_t n = 0; n < N; ++n) at[n] -= sizes[d] * arrays[n].strides[d];
      index[d] = 0;
    }
  }
}

/// Advances a row-major index. False when it comes round to all zeros.
bool next(Dims& index, const Dims& sizes);

/// Copies a box of elements of `width` bytes (1, 2, 4, 8 or 16), bits as they are. The arrays do not overlap.
void copy_box(std::byte* to, const Strided& to_at, const std::byte* from, const Strided& from_at, const Dims& sizes,
              std::int64_t width);

/// Fills `count` elements of `width` bytes with copies of the one at `element`.
void fill(std::byte* to, std::int64_t count, const std::byte* element, std::int64_t width);

}  // namespace hloom::interp
