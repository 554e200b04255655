// Triangular solves and Cholesky factors (hlo-ops 8.6), matrix by matrix, in the wide type.

#include <algorithm>
#include <cmath>
#include <complex>

#include "base/try.h"
#include "interp/contraction.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::Transposition;

template <typename W>
W conjugate(W x) {
  return x;
}
template <typename T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}
template <typename W>
W real_part(W x) {
  return x;
}
template <typename T>
T real_part(std::complex<T> x) {
  return x.real();
}
template <typename W>
W quotient(W a, W b) {
  return a / b;
}
template <typename T>
std::complex<T> quotient(std::complex<T> a, std::complex<T> b) {
  const T square = b.real() * b.real() + b.imag() * b.imag();
  const std::complex<T> top = times(a, std::conj(b));
  return {top.real() / square, top.imag() / square};
}

// f(W()) for the types that have matrices: floats and complex numbers.
template <typename F>
auto with_field(DType type, const F& f) {
  if (type == DType::F64) return f(0.0L);
  if (type == DType::C64) return f(std::complex<double>());
  if (type == DType::C128) return f(std::complex<long double>());
  return f(0.0);
}

// A square matrix that may be seen as its transpose or adjoint.
template <typename W>
struct View {
  const W* elements;
  std::int64_t n;
  bool transposed, conjugated;
  W operator()(std::int64_t i, std::int64_t j) const {
    const W x = transposed ? elements[j * n + i] : elements[i * n + j];
    return conjugated ? conjugate(x) : x;
  }
};

// Solves A·x = b in place; x's elements are `stride` apart.
template <typename W>
void substitute(const View<W>& a, bool lower, bool unit_diagonal, W* x, std::int64_t stride) {
  for (std::int64_t step = 0; step < a.n; ++step) {
    const std::int64_t i = lower ? step : a.n - 1 - step;
    W sum = x[i * stride];
    for (std::int64_t j = lower ? 0 : i + 1; j < (lower ? i : a.n); ++j) sum -= times(a(i, j), x[j * stride]);
    x[i * stride] = unit_diagonal ? sum : quotient(sum, a(i, i));
  }
}

// The factor L of the Hermitian matrix a, of which a's lower triangle is read. False if it is not positive definite.
template <typename W>
bool factor(const View<W>& a, W* l) {
  const std::int64_t n = a.n;
  for (std::int64_t j = 0; j < n; ++j) {
    auto diagonal = real_part(a(j, j));
    for (std::int64_t k = 0; k < j; ++k) diagonal -= real_part(times(l[j * n + k], conjugate(l[j * n + k])));
    if (!(diagonal > 0)) return false;
    const auto root = std::sqrt(diagonal);
    l[j * n + j] = root;
    for (std::int64_t i = j + 1; i < n; ++i) {
      W sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= times(l[i * n + k], conjugate(l[j * n + k]));
      l[i * n + j] = sum / root;
    }
  }
  return true;
}

template <typename W>
void adjoint_in_place(W* matrix, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      const W below = matrix[i * n + j];
      matrix[i * n + j] = conjugate(matrix[j * n + i]);
      matrix[j * n + i] = conjugate(below);
    }
}

}  // namespace

Expected<Value> cholesky(const Call& call) {
  const bool lower = call.instruction.attr<hlo::CholeskyAttr>().lower;
  const std::int64_t n = call.dims(0).back(), area = n * n;
  return with_field(call.shape.dtype(), [&]<typename W>(W) {
    const std::vector<W> a = widen<W>(call.array(0));
    std::vector<W> out(a.size());
    for (std::size_t at = 0; area > 0 && at < a.size(); at += static_cast<std::size_t>(area)) {
      W* l = out.data() + at;
      const bool good = factor(View<W>{a.data() + at, n, !lower, !lower}, l);
      if (!good) std::fill_n(l, area, W(NAN));
      if (!lower) adjoint_in_place(l, n);
    }
    return Expected<Value>(Value(rounded(call.shape, out)));
  });
}

Expected<Value> triangular_solve(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::TriangularSolveAttr>();
  const std::int64_t m = call.dims(0).back(), rows = call.dims(1).end()[-2], columns = call.dims(1).back();
  // x·A = b is Aᵗ·xᵗ = bᵗ.
  const bool transposed = (attr.transpose_a != Transposition::None) != !attr.left_side;
  const bool conjugated = attr.transpose_a == Transposition::Adjoint;
  return with_field(call.shape.dtype(), [&]<typename W>(W) {
    const std::vector<W> a = widen<W>(call.array(0));
    std::vector<W> x = widen<W>(call.array(1));
    const std::int64_t count = x.empty() ? 0 : static_cast<std::int64_t>(x.size()) / (rows * columns);
    for (std::int64_t matrix = 0; matrix < count; ++matrix) {
      const View<W> view{a.data() + matrix * m * m, m, transposed, conjugated};
      W* b = x.data() + matrix * rows * columns;
      if (attr.left_side)
        for (std::int64_t c = 0; c < columns; ++c)
          substitute(view, attr.lower != transposed, attr.unit_diagonal, b + c, columns);
      else
        for (std::int64_t r = 0; r < rows; ++r)
          substitute(view, attr.lower != transposed, attr.unit_diagonal, b + r * columns, 1);
    }
    return Expected<Value>(Value(rounded(call.shape, x)));
  });
}

}  // namespace hloom::interp
