// Two ways: the library's, for matrices beyond a few vectors, and plain code for small ones and where there is no library.
//
// A row-major matrix is its transpose in Fortran's eyes. So a = L·Lᴴ is a factor of aᵀ there, with the triangles
// exchanged, and op(a)·x = b is xᵀ·op(aᵀ) = bᵀ: sides and triangles exchanged, the same op.
#include "library/dense.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "base/fail.h"
#include "library/lapack_library.h"

namespace hloom::library {
namespace {

using Form = TriangularProblem::Form;

constexpr std::int64_t kLeastForLibrary = 48;  // a smaller matrix is done before the library has begun
constexpr std::int64_t kBlock = 32;            // rows of a factor that are applied at once
constexpr std::int64_t kTile = 256;            // right-hand sides of a block

// Real and complex arithmetic by the plain formulas.
template <typename T>
T times(T a, T b) {
  return a * b;
}
template <typename R>
std::complex<R> times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <typename T>
T conjugate(T a) {
  return a;
}
template <typename R>
std::complex<R> conjugate(std::complex<R> a) {
  return std::conj(a);
}
template <typename T>
T quotient(T a, T b) {
  return a / b;
}
template <typename R>
std::complex<R> quotient(std::complex<R> a, std::complex<R> b) {
  const double ar = a.real(), ai = a.imag(), br = b.real(), bi = b.imag(), square = br * br + bi * bi;
  return {static_cast<R>((ar * br + ai * bi) / square), static_cast<R>((ai * br - ar * bi) / square)};
}

// y -= f·x
template <typename T>
void subtract(T* y, T f, const T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] -= f * x[i];
}
template <typename R>
void subtract(std::complex<R>* y, std::complex<R> f, const std::complex<R>* x, std::int64_t n) {
  R* to = reinterpret_cast<R*>(y);
  const R *from = reinterpret_cast<const R*>(x), re = f.real(), im = f.imag();
  for (std::int64_t i = 0; i < n; ++i) {
    const R xr = from[2 * i], xi = from[2 * i + 1];
    to[2 * i] -= re * xr - im * xi;
    to[2 * i + 1] -= re * xi + im * xr;
  }
}

// The factor U of a = Uᴴ·U in place of a's upper triangle, some rows at a time: these rows are finished, then all rows below
// take them off. False if a is not positive definite.
template <typename T>
bool factor_upper(T* a, std::int64_t n) {
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t end = std::min(first + kBlock, n);
    for (std::int64_t k = first; k < end; ++k) {
      const auto square = std::real(a[k * n + k]);
      if (!(square > 0)) return false;
      const auto root = std::sqrt(square);
      a[k * n + k] = root;
      for (std::int64_t j = k + 1; j < n; ++j) a[k * n + j] /= root;
      for (std::int64_t i = k + 1; i < end; ++i) subtract(a + i * n + i, conjugate(a[k * n + i]), a + k * n + i, n - i);
    }
    for (std::int64_t i = end; i < n; ++i)
      for (std::int64_t k = first; k < end; ++k) subtract(a + i * n + i, conjugate(a[k * n + i]), a + k * n + i, n - i);
  }
  return true;
}

// The lower triangle from the upper one, or the other way round.
template <typename T>
void mirror(T* a, std::int64_t n, bool to_lower) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) (to_lower ? a[j * n + i] : a[i * n + j]) = conjugate(to_lower ? a[i * n + j] : a[j * n + i]);
}

template <typename T>
void clear_other(T* a, std::int64_t n, bool lower) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i * n + i] = std::real(a[i * n + i]);
    if (lower) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
    else std::fill(a + i * n, a + i * n + i, T(0));
  }
}

template <typename T>
bool factor_here(T* a, std::int64_t n, bool lower) {
  if (lower) mirror(a, n, false);
  if (!factor_upper(a, n)) return false;
  if (lower) mirror(a, n, true);
  return true;
}

template <typename T>
bool factor_there(T* a, std::int64_t size, bool lower) {
  const auto n = static_cast<std::int32_t>(size);
  const char uplo = lower ? 'U' : 'L';
  std::int32_t info = 0;
  fortran<T>(Fortran::Potrf, &uplo, &n, a, &n, &info);
  bool good = info == 0;
  for (std::int64_t i = 0; i < size; ++i) good = good && !std::isnan(std::real(a[i * size + i]));
  return good;
}

struct CholeskyCall {
  std::int64_t n = 0;
  bool lower = true, by_library = false;
};

template <typename T>
void run_cholesky(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const CholeskyCall& c = *static_cast<const CholeskyCall*>(buffers[0]);
  const std::int64_t area = c.n * c.n;
  for (std::int64_t matrix = begin; matrix < end; ++matrix) {
    const T* from = static_cast<const T*>(buffers[1]) + matrix * area;
    T* a = static_cast<T*>(buffers[2]) + matrix * area;
    if (a != from) std::copy_n(from, area, a);
    const bool good = c.by_library ? factor_there(a, c.n, c.lower) : factor_here(a, c.n, c.lower);
    if (good)
      clear_other(a, c.n, c.lower);
    else
      std::fill_n(a, area, T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
  }
}

struct TriangularCall {
  std::int64_t rows = 0, columns = 0, parts = 1;  // a matrix's right-hand sides are shared by so many blocks
  bool left = true, lower = true, unit_diagonal = false, by_library = false;
  Form form = Form::Plain;
};

// op(a), of which element (i, j) is a's at i·by_row + j·by_column or its conjugate.
template <typename T>
struct View {
  const T* a;
  std::int64_t n, by_row, by_column;
  bool lower, conjugated;

  View(const T* matrix, std::int64_t order, const TriangularCall& c)
      : a(matrix), n(order), by_row(order), by_column(1), lower(c.lower), conjugated(c.form == Form::Adjoint) {
    if (c.form == Form::Plain) return;
    std::swap(by_row, by_column);
    lower = !lower;
  }
  T operator()(std::int64_t i, std::int64_t j) const {
    const T x = a[i * by_row + j * by_column];
    return conjugated ? conjugate(x) : x;
  }
};

// Some columns of b, row by row from the one that stands alone.
template <typename T>
void solve_left(const View<T>& a, bool unit, T* b, std::int64_t pitch, std::int64_t columns) {
  for (std::int64_t step = 0; step < a.n; ++step) {
    const std::int64_t i = a.lower ? step : a.n - 1 - step;
    T* row = b + i * pitch;
    for (std::int64_t j = a.lower ? 0 : i + 1; j < (a.lower ? i : a.n); ++j) subtract(row, a(i, j), b + j * pitch, columns);
    if (unit) continue;
    const T d = a(i, i);
    for (std::int64_t k = 0; k < columns; ++k) row[k] = quotient(row[k], d);
  }
}

// Some rows of b: each is a system with the transpose.
template <typename T>
void solve_right(const View<T>& a, bool unit, T* b, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* x = b + r * a.n;
    for (std::int64_t step = 0; step < a.n; ++step) {
      const std::int64_t i = a.lower ? a.n - 1 - step : step;
      T sum = x[i];
      for (std::int64_t j = a.lower ? i + 1 : 0; j < (a.lower ? a.n : i); ++j) sum -= times(x[j], a(j, i));
      x[i] = unit ? sum : quotient(sum, a(i, i));
    }
  }
}

template <typename T>
void solve_there(const TriangularCall& c, const T* a, std::int64_t order, T* b, std::int64_t rows, std::int64_t columns) {
  const auto m = static_cast<std::int32_t>(columns), n = static_cast<std::int32_t>(rows);
  const auto lda = static_cast<std::int32_t>(order), ldb = static_cast<std::int32_t>(c.columns);
  const char side = c.left ? 'R' : 'L', uplo = c.lower ? 'U' : 'L', diag = c.unit_diagonal ? 'U' : 'N';
  const char trans = c.form == Form::Plain ? 'N' : c.form == Form::Transposed ? 'T' : 'C';
  const T one(1);
  fortran<T>(Fortran::Trsm, &side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb);
}

template <typename T>
void run_triangular(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const TriangularCall& c = *static_cast<const TriangularCall*>(buffers[0]);
  const std::int64_t order = c.left ? c.rows : c.columns, others = c.left ? c.columns : c.rows;
  for (std::int64_t block = begin; block < end; ++block) {
    const std::int64_t matrix = block / c.parts, first = block % c.parts * kTile, count = std::min(kTile, others - first);
    const T* a = static_cast<const T*>(buffers[1]) + matrix * order * order;
    const std::int64_t at = matrix * c.rows * c.columns + (c.left ? first : first * c.columns);
    const T* from = static_cast<const T*>(buffers[2]) + at;
    T* x = static_cast<T*>(buffers[3]) + at;
    const std::int64_t rows = c.left ? c.rows : count, columns = c.left ? count : c.columns;
    if (x != from)
      for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * c.columns, columns, x + r * c.columns);
    if (c.by_library)
      solve_there(c, a, order, x, rows, columns);
    else if (c.left)
      solve_left(View<T>(a, order, c), c.unit_diagonal, x, c.columns, columns);
    else
      solve_right(View<T>(a, order, c), c.unit_diagonal, x, rows);
  }
}

template <typename Function>
Expected<base::KernelFunction> for_type(DType type, const char* what, Function of) {
  switch (type) {
    case DType::F32: return of(float());
    case DType::F64: return of(double());
    case DType::C64: return of(std::complex<float>());
    case DType::C128: return of(std::complex<double>());
    default: return fail(Code::Unimplemented, what, " of ", type, " has no routine");
  }
}

bool by_library(std::int64_t order, std::int64_t longest, DenseWay way) {
  return way == DenseWay::Best && order >= kLeastForLibrary && longest <= INT32_MAX && want_lapack();
}

template <typename Call>
RoutinePlan one_call(base::KernelFunction function, const Call& call, std::int64_t operands, std::int64_t blocks, std::int64_t cost) {
  RoutinePlan plan;
  if (blocks == 0) return plan;
  Routine r;
  r.function = function;
  r.arguments = {{Argument::Kind::Descriptor}};
  for (std::int64_t i = 0; i < operands; ++i) r.arguments.push_back({Argument::Kind::Operand, i});
  r.arguments.push_back({Argument::Kind::Result});
  r.descriptor = base::AlignedBytes(std::as_bytes(std::span(&call, 1)));
  r.blocks = blocks;
  r.block_cost = cost;
  plan.calls.push_back(std::move(r));
  return plan;
}

}  // namespace

Expected<RoutinePlan> plan_cholesky(const CholeskyProblem& p, DenseWay way) {
  const auto function = for_type(p.type, "cholesky", [](auto t) { return base::KernelFunction(run_cholesky<decltype(t)>); });
  if (!function) return function.error();
  CholeskyCall call;
  call.n = p.n;
  call.lower = p.lower;
  call.by_library = by_library(p.n, p.n, way);
  return one_call(*function, call, 1, p.n == 0 ? 0 : p.batch, 64 + p.n * p.n * (p.n + 3) / 8);
}

Expected<RoutinePlan> plan_triangular_solve(const TriangularProblem& p, DenseWay way) {
  const auto function = for_type(p.type, "triangular-solve", [](auto t) { return base::KernelFunction(run_triangular<decltype(t)>); });
  if (!function) return function.error();
  const std::int64_t others = p.left ? p.columns : p.rows;
  TriangularCall call;
  call.rows = p.rows;
  call.columns = p.columns;
  call.parts = (others + kTile - 1) / kTile;
  call.left = p.left;
  call.lower = p.lower;
  call.unit_diagonal = p.unit_diagonal;
  call.form = p.form;
  call.by_library = by_library(p.order(), std::max(p.rows, p.columns), way);
  const std::int64_t blocks = p.order() == 0 ? 0 : p.batch * call.parts;
  return one_call(*function, call, 2, blocks, 64 + p.order() * (p.order() + 1) * std::min(others, kTile) / 8);
}

}  // namespace hloom::library
