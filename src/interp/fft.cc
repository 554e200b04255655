// Fourier transforms (hlo-ops 8.5), in double for c64 and long double for c128. Powers of two by halving, any other
// length by the definition; the roots of unity are taken from a table made by the library's sine and cosine, each from
// the smallest angle that gives it, so that they are good to the last place.

#include <cmath>
#include <complex>

#include "base/try.h"
#include "interp/element.h"
#include "interp/index.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::FftAttr;
using hlo::FftType;
using hlo::Literal;

template <typename T>
using Line = std::vector<std::complex<T>>;

constexpr long double kPi = 3.14159265358979323846264338327950288L;

template <typename T>
std::complex<T> product_of(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2πi·j/n) for j in [0, n); conjugates for the inverse.
template <typename T>
Line<T> roots_of_unity(std::int64_t n, bool inverse) {
  Line<T> roots(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) {
    // 8j/n = octant + rest: turn by whole eighths exactly, so that roots on the axes have exact zeros.
    const std::int64_t octant = 8 * j / n, rest = 8 * j - octant * n;
    const bool odd = (octant & 1) != 0;
    const long double angle = kPi * static_cast<long double>(odd ? n - rest : rest) / (4 * static_cast<long double>(n));
    long double c = std::cos(angle), s = std::sin(angle);
    if (odd) std::swap(c, s);                 // π/2 - angle within the quarter
    for (std::int64_t quarter = 0; quarter < octant / 2; ++quarter) {
      const long double turned = -s;
      s = c;
      c = turned;
    }
    roots[static_cast<std::size_t>(j)] = {static_cast<T>(c), static_cast<T>(inverse ? s : -s)};
  }
  return roots;
}

template <typename T>
void by_definition(Line<T>& line, const Line<T>& roots) {
  const std::size_t n = line.size();
  Line<T> out(n);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = 0; j < n; ++j) out[k] += product_of(line[j], roots[j * k % n]);
  line = std::move(out);
}

// Even and odd places apart, then joined. `stride`: of the roots.
template <typename T>
void by_halves(Line<T>& line, const Line<T>& roots, std::size_t stride) {
  const std::size_t n = line.size(), half = n / 2;
  if (n == 1) return;
  Line<T> even(half), odd(half);
  for (std::size_t i = 0; i < half; ++i) even[i] = line[2 * i], odd[i] = line[2 * i + 1];
  by_halves(even, roots, 2 * stride);
  by_halves(odd, roots, 2 * stride);
  for (std::size_t i = 0; i < half; ++i) {
    const std::complex<T> turned = product_of(odd[i], roots[i * stride]);
    line[i] = even[i] + turned;
    line[i + half] = even[i] - turned;
  }
}

// Transforms all lines along dimension d of a row-major array.
template <typename T>
void transform(Line<T>& x, const Dims& dims, std::size_t d, bool inverse) {
  const std::int64_t n = dims[d];
  if (n == 0 || product(dims) == 0) return;
  const Line<T> roots = roots_of_unity<T>(n, inverse);
  const Strided whole{0, row_major(dims)};
  Dims starts = dims;
  starts[d] = 1;
  Line<T> line(static_cast<std::size_t>(n));
  walk<1>(starts, {whole}, [&](const std::array<std::int64_t, 1>& at) {
    for (std::size_t i = 0; i < line.size(); ++i)
      line[i] = x[static_cast<std::size_t>(at[0]) + i * static_cast<std::size_t>(whole.strides[d])];
    if ((n & (n - 1)) == 0)
      by_halves(line, roots, 1);
    else
      by_definition(line, roots);
    const T scale = inverse ? static_cast<T>(n) : T{1};
    for (std::size_t i = 0; i < line.size(); ++i)
      x[static_cast<std::size_t>(at[0]) + i * static_cast<std::size_t>(whole.strides[d])] = line[i] / scale;
  });
}

// The last dimension becomes `size` places: those past the present ones are filled by fill(row, place).
template <typename T, typename Fill>
Line<T> resized(const Line<T>& x, Dims& dims, std::int64_t size, const Fill& fill) {
  const std::int64_t had = dims.back();
  const std::int64_t rows = had == 0 ? 0 : static_cast<std::int64_t>(x.size()) / had;
  Line<T> out;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < size; ++i)
      out.push_back(i < had ? x[static_cast<std::size_t>(r * had + i)] : fill(r, i));
  dims.back() = size;
  return out;
}

template <typename T>
Line<T> run(const FftAttr& attr, Line<T> x, Dims dims) {
  const bool inverse = attr.type == FftType::Ifft || attr.type == FftType::Irfft;
  const std::size_t last = dims.size() - 1, count = attr.length.size();
  const auto none = [](std::int64_t, std::int64_t) { return std::complex<T>(); };
  if (attr.type == FftType::Irfft) {
    // The other dimensions first; then each line along the last one is the half of a symmetric one.
    for (std::size_t i = 1; i < count; ++i) transform(x, dims, last - i, true);
    const std::int64_t n = attr.length.back(), had = dims.back();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i) % had;
      if (place == 0 || 2 * place == n) x[i] = x[i].real();
    }
    const Line<T> half = x;
    x = resized(half, dims, n, [&](std::int64_t r, std::int64_t i) {
      return std::conj(half[static_cast<std::size_t>(r * had + n - i)]);
    });
    transform(x, dims, last, true);
    return x;
  }
  for (std::size_t i = 0; i < count; ++i) {
    transform(x, dims, last - i, inverse);
    if (i == 0 && attr.type == FftType::Rfft) x = resized(x, dims, dims[last] == 0 ? 0 : dims[last] / 2 + 1, none);
  }
  return x;
}

template <typename T>
Literal transformed(const Call& call) {
  const Line<T> result = run(call.instruction.attr<FftAttr>(), widen<std::complex<T>>(call.array(0)), call.dims(0));
  return rounded(call.shape, result);
}

}  // namespace

Expected<Value> fft(const Call& call) {
  const bool is_double = real_type(call.shape.dtype()) == DType::F64;
  return Value(is_double ? transformed<long double>(call) : transformed<double>(call));
}

}  // namespace hloom::interp
