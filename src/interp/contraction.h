// Arrays made ready for contractions: wide elements, dimensions in groups.
#pragma once

#include <complex>
#include <vector>

#include "interp/element.h"
#include "interp/index.h"

namespace hloom::interp {

/// The usual product. (The language's own product of complex numbers makes infinities out of NaNs.)
template <typename W>
W times(W a, W b) {
  return a * b;
}
template <typename T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// An array's elements as W, with dimensions order[0], order[1], … of it, row-major.
template <typename W>
std::vector<W> transposed(const hlo::Literal& array, const Dims& order) {
  const std::vector<W> elements = widen<W>(array);
  const Dims& dims = array.shape().dims();
  const Dims strides = row_major(dims);
  Dims sizes;
  Strided from;
  for (const std::int64_t d : order) {
    sizes.push_back(dims[static_cast<std::size_t>(d)]);
    from.strides.push_back(strides[static_cast<std::size_t>(d)]);
  }
  std::vector<W> result;
  result.reserve(elements.size());
  walk<1>(sizes, {from},
          [&](const std::array<std::int64_t, 1>& at) { result.push_back(elements[static_cast<std::size_t>(at[0])]); });
  return result;
}

/// out[b,m,n] += Σ_k lhs[b,m,k] · rhs[b,k,n], k in order.
struct MatrixSizes {
  std::int64_t batch = 1, m = 1, k = 1, n = 1;
};
template <typename W>
void multiply_matrices(const MatrixSizes& s, const W* lhs, const W* rhs, W* out) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t m = 0; m < s.m; ++m) {
      W* row = out + (b * s.m + m) * s.n;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const W x = lhs[(b * s.m + m) * s.k + k];
        const W* y = rhs + (b * s.k + k) * s.n;
        for (std::int64_t n = 0; n < s.n; ++n) row[n] += times(x, y[n]);
      }
    }
}

/// The numbers 0 … rank-1 that are in none of the lists.
Dims other_dims(std::int64_t rank, const Dims& a, const Dims& b, const Dims& c = {});
/// The product of the sizes of these dimensions.
std::int64_t product_of(const Dims& dims, const Dims& which);

}  // namespace hloom::interp
