// Each target by what its results are for: factors multiply back to the matrix, eigenvectors are kept in direction.
#include "library/lapack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "library/lapack_library.h"

namespace hloom::library {
namespace {

using Wide = std::complex<double>;
using Dims = std::vector<std::int64_t>;

constexpr std::int64_t kBatch = 2;

template <typename T>
constexpr DType kType = ElementOf<T>::kComplex ? (sizeof(T) == 8 ? DType::C64 : DType::C128)
                                               : (sizeof(T) == 4 ? DType::F32 : DType::F64);

// [2, rows, columns] with the matrices column by column, [2, n], [2].
Shape matrices(DType type, std::int64_t rows, std::int64_t columns) {
  Layout layout = Layout::descending(3);
  layout.minor_to_major = {1, 2, 0};
  return Shape::array(type, {kBatch, rows, columns}, layout);
}
Shape vectors(DType type, std::int64_t n) { return Shape::array(type, {kBatch, n}, Layout::descending(2)); }
Shape infos() { return Shape::array(DType::S32, {kBatch}, Layout::descending(1)); }

/// A matrix of a batch, column by column, in a wide type.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<Wide> x;
  Matrix(std::int64_t m, std::int64_t n) : rows(m), columns(n), x(static_cast<std::size_t>(m * n)) {}
  Wide& operator()(std::int64_t i, std::int64_t j) { return x[static_cast<std::size_t>(j * rows + i)]; }
  const Wide& operator()(std::int64_t i, std::int64_t j) const { return x[static_cast<std::size_t>(j * rows + i)]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j)
      for (std::int64_t k = 0; k < a.columns; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}
Matrix operator-(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.x.size(); ++i) a.x[i] -= b.x[i];
  return a;
}
Matrix adjoint(const Matrix& a) {
  Matrix c(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) c(j, i) = std::conj(a(i, j));
  return c;
}
Matrix identity(std::int64_t n) {
  Matrix c(n, n);
  for (std::int64_t i = 0; i < n; ++i) c(i, i) = 1;
  return c;
}
double largest(const Matrix& a) {
  double most = 0;
  for (const Wide& v : a.x) most = std::isnan(std::abs(v)) ? INFINITY : std::max(most, std::abs(v));
  return most;
}
// The triangle on and above, or on and below, the diagonal.
Matrix upper(Matrix a) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < std::min(i, a.columns); ++j) a(i, j) = 0;
  return a;
}
Matrix lower(Matrix a) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = i + 1; j < a.columns; ++j) a(i, j) = 0;
  return a;
}
Matrix first_rows(const Matrix& a, std::int64_t rows) {
  Matrix c(rows, a.columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) c(i, j) = a(i, j);
  return c;
}

/// A call with its memory.
template <typename T>
class Trial {
 public:
  using Real = RealOf<T>;
  static constexpr bool kComplex = ElementOf<T>::kComplex;

  explicit Trial(std::string name, std::string attributes = "", const std::string& suffix = "_ffi") {
    problem.target = "lapack_" + std::string(1, "sdcz"[ElementOf<T>::kNumber]) + name + suffix;
    problem.backend_config = std::move(attributes);
  }

  CustomCallProblem problem;

  void operand(const Shape& shape, std::vector<std::byte> bytes) {
    problem.operands.push_back(shape);
    problem.scalars.emplace_back();
    operands_.push_back(std::move(bytes));
  }
  void scalar(std::int32_t value) {
    operand(Shape::array(DType::S32, {}), std::vector<std::byte>(4));
    problem.scalars.back() = value;
  }
  // Both matrices of the batch, of which the second is the first with a twist.
  void operand(const std::vector<Matrix>& batch) {
    std::vector<T> x;
    for (const Matrix& m : batch)
      for (const Wide& v : m.x) {
        if constexpr (kComplex) x.emplace_back(static_cast<Real>(v.real()), static_cast<Real>(v.imag()));
        else x.push_back(static_cast<T>(v.real()));
      }
    operand(matrices(kType<T>, batch[0].rows, batch[0].columns), bytes_of(x));
  }
  void operand_of(const Trial& other, std::size_t result) { operand(other.problem.results[result], other.results_[result]); }

  void result(const Shape& shape) { problem.results.push_back(shape); }
  void matrix(std::int64_t m, std::int64_t n) { result(matrices(kType<T>, m, n)); }
  void vector(std::int64_t n) { result(vectors(kType<T>, n)); }
  void real_vector(std::int64_t n) { result(vectors(kType<Real>, n)); }
  void info() { result(infos()); }

  Expected<> run() {
    const auto plan = plan_custom_call(problem);
    if (!plan) return plan.error();
    std::vector<void*> from, to;
    for (auto& o : operands_) from.push_back(o.data());
    results_.clear();
    for (const Shape& shape : problem.results)
      results_.emplace_back(static_cast<std::size_t>(shape.size_bytes()), std::byte{0x5a});
    for (auto& r : results_) to.push_back(r.data());
    return library::run(*plan, from, to);
  }
  void expect_runs() {
    const Expected<> done = run();
    ASSERT_TRUE(done) << done.error().message();
  }

  // The matrix, or vector as a column, of a batch element.
  Matrix get(std::size_t result, std::int64_t batch = 0) const {
    const Shape& s = problem.results[result];
    Matrix m(s.dim(1), s.rank() == 3 ? s.dim(2) : 1);
    for (std::size_t i = 0; i < m.x.size(); ++i) m.x[i] = number(s.dtype(), results_[result].data(), static_cast<std::size_t>(batch) * m.x.size() + i);
    return m;
  }
  std::int32_t get_info(std::size_t result, std::int64_t batch = 0) const { return reinterpret_cast<const std::int32_t*>(results_[result].data())[batch]; }

 private:
  static std::vector<std::byte> bytes_of(const std::vector<T>& x) {
    const auto* from = reinterpret_cast<const std::byte*>(x.data());
    return {from, from + x.size() * sizeof(T)};
  }
  static Wide number(DType type, const std::byte* bytes, std::size_t i) {
    switch (type) {
      case DType::F32: return reinterpret_cast<const float*>(bytes)[i];
      case DType::F64: return reinterpret_cast<const double*>(bytes)[i];
      case DType::C64: return reinterpret_cast<const std::complex<float>*>(bytes)[i];
      case DType::C128: return reinterpret_cast<const std::complex<double>*>(bytes)[i];
      default: return reinterpret_cast<const std::int32_t*>(bytes)[i];
    }
  }

  std::vector<std::vector<std::byte>> operands_, results_;
};

// Numbers that the type has, so that what is checked is the routine.
template <typename T>
Matrix random_matrix(std::int64_t m, std::int64_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> number(-64, 64);
  Matrix a(m, n);
  for (Wide& v : a.x) v = {number(random) / 64.0, ElementOf<T>::kComplex ? number(random) / 64.0 : 0.0};
  return a;
}
template <typename T>
std::vector<Matrix> random_batch(std::int64_t m, std::int64_t n, std::uint32_t seed = 1) {
  return {random_matrix<T>(m, n, seed), random_matrix<T>(m, n, seed + 100)};
}
template <typename T>
std::vector<Matrix> hermitian_batch(std::int64_t n, double shift) {
  std::vector<Matrix> batch = random_batch<T>(n, n, 7);
  for (Matrix& a : batch) {
    const Matrix b = adjoint(a);
    for (std::size_t i = 0; i < a.x.size(); ++i) a.x[i] = 0.5 * (a.x[i] + b.x[i]);
    for (std::int64_t i = 0; i < n; ++i) a(i, i) += shift;
  }
  return batch;
}

// A few roundings for each of n² products, of numbers of size 1 and a little more.
template <typename T>
double bound(std::int64_t n) {
  return 40 * static_cast<double>(n + 1) * static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
}

template <typename T>
class Lapack : public testing::Test {
 protected:
  void SetUp() override {
    if (!want_lapack()) GTEST_SKIP() << want_lapack().error().message();
  }
};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Lapack, Types);

const std::pair<std::int64_t, std::int64_t> kSizes[] = {{0, 0}, {1, 1}, {3, 3}, {5, 2}, {2, 5}, {17, 9}, {9, 17}, {40, 40}};
const std::int64_t kSquares[] = {0, 1, 2, 7, 33};

TYPED_TEST(Lapack, Potrf) {
  using T = TypeParam;
  for (const std::int64_t n : kSquares)
    for (const bool low : {true, false}) {
      Trial<T> t("potrf", low ? "{uplo = 76 : ui8}" : "{uplo = 85 : ui8}");
      std::vector<Matrix> a = hermitian_batch<T>(n, static_cast<double>(n) + 1);
      if (n > 0) a[1](n - 1, n - 1) = -1;  // the second is not positive definite
      t.operand(a);
      t.matrix(n, n);
      t.info();
      t.expect_runs();
      EXPECT_EQ(t.get_info(1, 0), 0);
      EXPECT_EQ(t.get_info(1, 1), n);
      const Matrix l = low ? lower(t.get(0)) : adjoint(upper(t.get(0)));
      EXPECT_LE(largest(l * adjoint(l) - a[0]), bound<T>(n) * static_cast<double>(n + 1));
    }
}

TYPED_TEST(Lapack, Getrf) {
  using T = TypeParam;
  for (const auto& [m, n] : kSizes) {
    Trial<T> t("getrf", "{}");
    const std::vector<Matrix> a = random_batch<T>(m, n);
    const std::int64_t least = std::min(m, n);
    t.operand(a);
    t.matrix(m, n);
    t.result(vectors(DType::S32, least));
    t.info();
    t.expect_runs();
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const Matrix lu = t.get(0, b), pivots = t.get(1, b);
      Matrix l(m, least);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < std::min(i + 1, least); ++j) l(i, j) = i == j ? 1 : lu(i, j);
      Matrix moved = a[static_cast<std::size_t>(b)];
      for (std::int64_t k = 0; k < least; ++k)
        for (std::int64_t j = 0; j < n; ++j) std::swap(moved(k, j), moved(static_cast<std::int64_t>(pivots(k, 0).real()) - 1, j));
      EXPECT_EQ(t.get_info(2, b), 0);
      EXPECT_LE(largest(l * first_rows(upper(lu), least) - moved), bound<T>(m + n));
    }
  }
}

// Q of a factored matrix, by orgqr.
template <typename T>
Matrix q_of(const Trial<T>& factored, std::size_t matrix, std::size_t tau, std::int64_t m, std::int64_t n, std::int64_t b) {
  Trial<T> t(Trial<T>::kComplex ? "ungqr" : "orgqr", "{}");
  if (n <= m) {
    t.operand_of(factored, matrix);
  } else {
    std::vector<Matrix> reflectors;
    for (std::int64_t k = 0; k < kBatch; ++k) {
      Matrix part(m, m);
      const Matrix whole = factored.get(matrix, k);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < m; ++j) part(i, j) = whole(i, j);
      reflectors.push_back(part);
    }
    t.operand(reflectors);
  }
  t.operand_of(factored, tau);
  t.matrix(m, std::min(m, n));
  t.expect_runs();
  return t.get(0, b);
}

TYPED_TEST(Lapack, GeqrfAndOrgqr) {
  using T = TypeParam;
  for (const auto& [m, n] : kSizes) {
    Trial<T> t("geqrf", "{}");
    const std::vector<Matrix> a = random_batch<T>(m, n);
    t.operand(a);
    t.matrix(m, n);
    t.vector(std::min(m, n));
    t.expect_runs();
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const Matrix q = q_of(t, 0, 1, m, n, b), r = first_rows(upper(t.get(0, b)), std::min(m, n));
      EXPECT_LE(largest(q * r - a[static_cast<std::size_t>(b)]), bound<T>(m + n));
      EXPECT_LE(largest(adjoint(q) * q - identity(q.columns)), bound<T>(m + n));
    }
  }
}

TYPED_TEST(Lapack, Geqp3) {
  using T = TypeParam;
  for (const auto& [m, n] : kSizes) {
    Trial<T> t("geqp3", "{}");
    const std::vector<Matrix> a = random_batch<T>(m, n);
    t.operand(a);
    t.operand(vectors(DType::S32, n), std::vector<std::byte>(static_cast<std::size_t>(8 * n)));
    t.matrix(m, n);
    t.result(vectors(DType::S32, n));
    t.vector(std::min(m, n));
    t.expect_runs();
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const Matrix q = q_of(t, 0, 2, m, n, b), r = first_rows(upper(t.get(0, b)), std::min(m, n)), order = t.get(1, b);
      Matrix moved(m, n);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) moved(i, j) = a[static_cast<std::size_t>(b)](i, static_cast<std::int64_t>(order(j, 0).real()) - 1);
      EXPECT_LE(largest(q * r - moved), bound<T>(m + n));
    }
  }
}

// Qᴴ·c, Q·c, c·Q and c·Qᴴ against Q itself.
TYPED_TEST(Lapack, Ormqr) {
  using T = TypeParam;
  const std::int64_t m = 9, n = 4;
  for (const bool left : {true, false})
    for (const bool transpose : {true, false}) {
      Trial<T> f("geqrf", "{}");
      f.operand(random_batch<T>(m, m));
      f.matrix(m, m);
      f.vector(m);
      f.expect_runs();
      const Matrix q = q_of(f, 0, 1, m, m, 1);
      Trial<T> t(Trial<T>::kComplex ? "unmqr" : "ormqr",
                std::string("{left = ") + (left ? "true" : "false") + ", transpose = " + (transpose ? "true}" : "false}"));
      const std::vector<Matrix> c = left ? random_batch<T>(m, n, 3) : random_batch<T>(n, m, 3);
      t.operand_of(f, 0);
      t.operand_of(f, 1);
      t.operand(c);
      t.matrix(c[0].rows, c[0].columns);
      t.expect_runs();
      const Matrix op = transpose ? adjoint(q) : q;
      EXPECT_LE(largest(t.get(0, 1) - (left ? op * c[1] : c[1] * op)), bound<T>(m));
    }
}

TYPED_TEST(Lapack, Trsm) {
  using T = TypeParam;
  for (const std::int64_t n : {0, 1, 6})
    for (const char side : {'L', 'R'})
      for (const char uplo : {'L', 'U'})
        for (const char trans : {'N', 'T', 'C'})
          for (const char diag : {'N', 'U'}) {
            Trial<T> t("trsm", "{diag = " + std::to_string(diag) + " : ui8, side = " + std::to_string(side) + " : ui8, trans_x = " +
                                  std::to_string(trans) + " : ui8, uplo = " + std::to_string(uplo) + " : ui8}");
            std::vector<Matrix> a = random_batch<T>(n, n);
            for (Matrix& x : a)
              for (std::int64_t i = 0; i < n; ++i) x(i, i) += 3;
            const std::vector<Matrix> b = side == 'L' ? random_batch<T>(n, 3, 5) : random_batch<T>(3, n, 5);
            t.operand(a);
            t.operand(b);
            t.matrix(b[0].rows, b[0].columns);
            t.expect_runs();
            Matrix op = uplo == 'L' ? lower(a[1]) : upper(a[1]);
            for (std::int64_t i = 0; i < n && diag == 'U'; ++i) op(i, i) = 1;
            if (trans != 'N') op = adjoint(op);
            if (trans == 'T')
              for (Wide& v : op.x) v = std::conj(v);
            const Matrix x = t.get(0, 1), product = side == 'L' ? op * x : x * op;
            EXPECT_LE(largest(product - b[1]), 100 * bound<T>(n)) << side << uplo << trans << diag;
          }
}

TYPED_TEST(Lapack, Syevd) {
  using T = TypeParam;
  for (const std::int64_t n : kSquares)
    for (const bool low : {true, false}) {
      Trial<T> t(Trial<T>::kComplex ? "heevd" : "syevd", low ? "{mode = 86 : ui8, uplo = 76 : ui8}" : "{mode = 86 : ui8, uplo = 85 : ui8}");
      const std::vector<Matrix> a = hermitian_batch<T>(n, 0);
      t.operand(a);
      t.matrix(n, n);
      t.real_vector(n);
      t.info();
      t.expect_runs();
      for (std::int64_t b = 0; b < kBatch; ++b) {
        const Matrix v = t.get(0, b), w = t.get(1, b);
        Matrix scaled = v;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) scaled(i, j) *= w(j, 0);
        EXPECT_EQ(t.get_info(2, b), 0);
        EXPECT_LE(largest(scaled * adjoint(v) - a[static_cast<std::size_t>(b)]), 4 * bound<T>(n));
        EXPECT_LE(largest(adjoint(v) * v - identity(n)), bound<T>(n));
      }
    }
}

TYPED_TEST(Lapack, Geev) {
  using T = TypeParam;
  constexpr bool complex = Trial<T>::kComplex;
  for (const std::int64_t n : kSquares) {
    Trial<T> t("geev", "{compute_left = 86 : ui8, compute_right = 86 : ui8}");
    std::vector<Matrix> a = random_batch<T>(n, n);
    if (n > 1) a[1](0, 1) = NAN;
    t.operand(a);
    t.vector(n);
    if (!complex) t.vector(n);
    const DType type = complex ? kType<T> : kType<T> == DType::F32 ? DType::C64 : DType::C128;
    t.result(matrices(type, n, n));
    t.result(matrices(type, n, n));
    t.info();
    t.expect_runs();
    Matrix w = t.get(0);
    if (!complex)
      for (std::int64_t i = 0; i < n; ++i) w(i, 0) += Wide(0, 1) * t.get(1)(i, 0);
    const std::size_t at = complex ? 1 : 2;
    Matrix left = t.get(at), right = t.get(at + 1);
    const Matrix ar = a[0] * right, la = adjoint(left) * a[0];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        EXPECT_LE(std::abs(ar(i, j) - right(i, j) * w(j, 0)), 8 * bound<T>(n));
        EXPECT_LE(std::abs(la(i, j) - w(i, 0) * std::conj(left(j, i))), 8 * bound<T>(n));
      }
    EXPECT_EQ(t.get_info(at + 2, 0), 0);
    EXPECT_EQ(t.get_info(at + 2, 1), n > 1 ? -4 : 0);  // not finite
  }
}

TYPED_TEST(Lapack, GesddAndGesvd) {
  using T = TypeParam;
  for (const char* name : {"gesdd", "gesvd"})
    for (const auto& [m, n] : kSizes)
      for (const char mode : {'A', 'S', 'N'}) {
        Trial<T> t(name, "{mode = " + std::to_string(mode) + " : ui8}");
        const std::vector<Matrix> a = random_batch<T>(m, n);
        const std::int64_t least = std::min(m, n), columns = mode == 'A' ? m : least, rows = mode == 'A' ? n : least;
        t.operand(a);
        t.matrix(m, n);
        t.real_vector(least);
        t.matrix(m, columns);
        t.matrix(rows, n);
        t.info();
        t.expect_runs();
        for (std::int64_t b = 0; b < kBatch; ++b) {
          EXPECT_EQ(t.get_info(4, b), 0);
          const Matrix s = t.get(1, b), u = t.get(2, b), vt = t.get(3, b);
          for (std::int64_t i = 1; i < least; ++i) EXPECT_GE(s(i - 1, 0).real(), s(i, 0).real());
          if (mode == 'N') continue;
          Matrix us(m, least);
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < least; ++j) us(i, j) = u(i, j) * s(j, 0);
          EXPECT_LE(largest(us * first_rows(vt, least) - a[static_cast<std::size_t>(b)]), 4 * bound<T>(m + n)) << name << mode;
          EXPECT_LE(largest(adjoint(u) * u - identity(columns)), bound<T>(m + n));
          EXPECT_LE(largest(vt * adjoint(vt) - identity(rows)), bound<T>(m + n));
        }
      }
}

TYPED_TEST(Lapack, Gees) {
  using T = TypeParam;
  for (const std::int64_t n : kSquares) {
    Trial<T> t("gees", "{mode = 86 : ui8, sort = 78 : ui8}");
    const std::vector<Matrix> a = random_batch<T>(n, n);
    t.operand(a);
    t.matrix(n, n);
    t.matrix(n, n);
    t.vector(n);
    if (!Trial<T>::kComplex) t.vector(n);
    t.info();
    t.info();
    t.expect_runs();
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const Matrix form = t.get(0, b), q = t.get(1, b);
      EXPECT_LE(largest(q * form * adjoint(q) - a[static_cast<std::size_t>(b)]), 8 * bound<T>(n));
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j + 1 < i; ++j) EXPECT_EQ(form(i, j), Wide(0));
      EXPECT_EQ(t.get_info(Trial<T>::kComplex ? 4 : 5, b), 0);
    }
  }
}

// Q·H·Qᴴ, where Q is made of the reflectors below the first subdiagonal.
TYPED_TEST(Lapack, Gehrd) {
  using T = TypeParam;
  for (const std::int64_t n : kSquares) {
    Trial<T> t("gehrd", "{high = " + std::to_string(n) + " : i32, low = 1 : i32}");
    const std::vector<Matrix> a = random_batch<T>(n, n);
    t.operand(a);
    t.matrix(n, n);
    t.vector(std::max<std::int64_t>(n - 1, 0));
    t.info();
    t.expect_runs();
    const Matrix packed = t.get(0), tau = t.get(1);
    Matrix q = identity(n), h = packed;
    for (std::int64_t k = 0; k + 1 < n; ++k) {
      Matrix v(n, 1), reflector = identity(n);
      v(k + 1, 0) = 1;
      for (std::int64_t i = k + 2; i < n; ++i) v(i, 0) = packed(i, k), h(i, k) = 0;
      const Matrix outer = v * adjoint(v);
      for (std::size_t i = 0; i < outer.x.size(); ++i) reflector.x[i] -= tau(k, 0) * outer.x[i];
      q = q * reflector;
    }
    EXPECT_LE(largest(q * h * adjoint(q) - a[0]), 8 * bound<T>(n));
    EXPECT_EQ(t.get_info(2, 1), 0);
  }
}

// A tridiagonal matrix has the same trace and the same sum of squares.
TYPED_TEST(Lapack, Sytrd) {
  using T = TypeParam;
  for (const std::int64_t n : kSquares)
    for (const bool low : {true, false}) {
      Trial<T> t(Trial<T>::kComplex ? "hetrd" : "sytrd", low ? "{uplo = 76 : ui8}" : "{uplo = 85 : ui8}");
      const std::vector<Matrix> a = hermitian_batch<T>(n, 0);
      const std::int64_t less = std::max<std::int64_t>(n - 1, 0);
      t.operand(a);
      t.matrix(n, n);
      t.real_vector(n);
      t.real_vector(less);
      t.vector(less);
      t.info();
      t.expect_runs();
      double trace = 0, squares = 0;
      for (std::int64_t i = 0; i < n; ++i) trace += a[1](i, i).real() - t.get(1, 1)(i, 0).real();
      for (const Wide& v : a[1].x) squares += std::norm(v);
      for (const Wide& v : t.get(1, 1).x) squares -= std::norm(v);
      for (const Wide& v : t.get(2, 1).x) squares -= 2 * std::norm(v);
      EXPECT_LE(std::abs(trace), bound<T>(n) * static_cast<double>(n + 1));
      EXPECT_LE(std::abs(squares), bound<T>(n) * static_cast<double>(n * n + 1));
      EXPECT_EQ(t.get_info(4), 0);
    }
}

Matrix tridiagonal(const Matrix& dl, const Matrix& d, const Matrix& du) {
  Matrix a(d.rows, d.rows);
  for (std::int64_t i = 0; i < d.rows; ++i) {
    a(i, i) = d(i, 0);
    if (i > 0) a(i, i - 1) = dl(i, 0);
    if (i + 1 < d.rows) a(i, i + 1) = du(i, 0);
  }
  return a;
}

template <typename T>
void operand_vector(Trial<T>& t, const std::vector<Matrix>& batch) {
  t.operand(batch);  // a column is stored as a vector is
  t.problem.operands.back() = vectors(kType<T>, batch[0].rows);
}

TYPED_TEST(Lapack, GtsvAndItsPerturbedForm) {
  using T = TypeParam;
  for (const bool perturbed : {false, true})
    for (const std::int64_t n : {0, 1, 2, 7, 20}) {
      Trial<T> t("gtsv", "{}");
      if (perturbed) t.problem.target = "tridiagonal_solve_perturbed_ffi";
      const std::vector<Matrix> dl = random_batch<T>(n, 1, 1), du = random_batch<T>(n, 1, 2), b = random_batch<T>(n, 3, 4);
      std::vector<Matrix> d = random_batch<T>(n, 1, 3);
      for (Matrix& x : d)
        for (Wide& v : x.x) v += 3;
      operand_vector(t, dl);
      operand_vector(t, d);
      operand_vector(t, du);
      t.operand(b);
      for (int i = 0; i < (perturbed ? 0 : 3); ++i) t.vector(n);
      t.matrix(n, 3);
      if (!perturbed) t.info();
      t.expect_runs();
      for (std::int64_t k = 0; k < kBatch; ++k) {
        const auto at = static_cast<std::size_t>(k);
        EXPECT_LE(largest(tridiagonal(dl[at], d[at], du[at]) * t.get(perturbed ? 0 : 3, k) - b[at]), bound<T>(n));
        EXPECT_EQ(perturbed ? 0 : t.get_info(4, k), 0);
      }
    }
}

// A singular system's solution is large, finite, and all but in the null space: what inverse iteration wants.
TYPED_TEST(Lapack, PerturbedSolvesWhatIsSingular) {
  using T = TypeParam;
  const std::int64_t n = 6;
  Trial<T> t("");
  t.problem.target = "tridiagonal_solve_perturbed_ffi";
  Matrix beside(n, 1), d(n, 1), b(n, 1);
  // Second differences with free ends: constants are the null space.
  for (std::int64_t i = 0; i < n; ++i) beside(i, 0) = -1, d(i, 0) = i == 0 || i == n - 1 ? 1 : 2, b(i, 0) = 1;
  operand_vector(t, {beside, beside});
  operand_vector(t, {d, d});
  operand_vector(t, {beside, beside});
  t.operand({b, b});
  t.matrix(n, 1);
  t.expect_runs();
  const Matrix x = t.get(0, 1);
  EXPECT_GT(largest(x), 1e4);
  for (std::int64_t i = 0; i < n; ++i) EXPECT_NEAR(std::abs(x(i, 0) / x(0, 0)), 1, 1e-3);
}

// The older form: sizes and flags as operands, work memory as results.
TYPED_TEST(Lapack, OlderForms) {
  using T = TypeParam;
  const std::int64_t n = 5;
  Trial<T> t("potrf", "", "");
  const std::vector<Matrix> a = hermitian_batch<T>(n, 6);
  for (const std::int32_t s : {1, 2, 5}) t.scalar(s);
  t.operand(a);
  t.matrix(n, n);
  t.info();
  t.expect_runs();
  const Matrix l = lower(t.get(0, 1));
  EXPECT_LE(largest(l * adjoint(l) - a[1]), bound<T>(n) * 6);

  Trial<T> q("geqrf", "", "");
  for (const std::int32_t s : {2, 5, 5, 64}) q.scalar(s);
  q.operand(a);
  q.matrix(n, n);
  q.vector(n);
  q.info();
  q.result(Shape::array(kType<T>, {64}));
  q.expect_runs();
  EXPECT_EQ(q.get_info(2, 1), 0);
  EXPECT_LE(largest(q_of(q, 0, 1, n, n, 1) * upper(q.get(0, 1)) - a[1]), bound<T>(n) * 6);

  Trial<T> s("trsm", "", "");
  s.problem.target = "blas_" + std::string(1, "sdcz"[ElementOf<T>::kNumber]) + "trsm";
  for (const std::int32_t value : {1, 1, 0, 0, 5, 5, 2}) s.scalar(value);
  std::vector<T> two = {T(2)};
  const auto* bytes = reinterpret_cast<const std::byte*>(two.data());
  s.operand(Shape::array(kType<T>, {}), {bytes, bytes + sizeof(T)});
  s.operand(a);
  const std::vector<Matrix> b = random_batch<T>(n, n, 9);
  s.operand(b);
  s.matrix(n, n);
  s.expect_runs();
  Matrix doubled = b[1];
  for (Wide& v : doubled.x) v *= 2;
  EXPECT_LE(largest(lower(a[1]) * s.get(0, 1) - doubled), bound<T>(n) * 6);

  Trial<T> e("gees", "", "");
  for (const int value : {2, 5, 86, 78}) e.scalar(value);
  e.operand(a);
  e.matrix(n, n);
  if (Trial<T>::kComplex) e.result(Shape::array(kType<RealOf<T>>, {n}));
  for (int i = 0; i < (Trial<T>::kComplex ? 1 : 2); ++i) e.vector(n);
  e.matrix(n, n);
  e.info();
  e.info();
  e.expect_runs();
  const Matrix vectors = e.get(3, 1);
  EXPECT_LE(largest(vectors * e.get(0, 1) * adjoint(vectors) - a[1]), 8 * bound<T>(n) * 6);
}

std::string refusal(Trial<double>& t) {
  const Expected<> done = t.run();
  return done ? "runs" : done.error().message();
}

using Refused = Lapack<double>;

TEST_F(Refused, WhatTheTargetDoesNotTake) {
  const std::vector<Matrix> a = random_batch<double>(3, 3);
  Trial<double> letter("potrf", "{uplo = 88 : ui8}"), none("potrf"), few("potrf", "{uplo = 76 : ui8}"), size("potrf", "{uplo = 76 : ui8}"),
      layout("potrf", "{uplo = 76 : ui8}"), unknown("getrx", "{}"), sorted("gees", "{mode = 86 : ui8, sort = 83 : ui8}");
  for (Trial<double>* t : {&letter, &none, &size, &layout}) {
    t->operand(a);
    t->matrix(3, t == &size ? 4 : 3);
    t->info();
  }
  layout.problem.operands[0].set_layout(Layout::descending(3));
  sorted.operand(a);
  for (int i = 0; i < 2; ++i) sorted.matrix(3, 3);
  for (int i = 0; i < 2; ++i) sorted.vector(3);
  for (int i = 0; i < 2; ++i) sorted.info();
  EXPECT_EQ(refusal(letter), "lapack_dpotrf_ffi: attribute uplo is 88, must be one of the letters LU");
  EXPECT_EQ(refusal(none), "lapack_dpotrf_ffi: has no attribute uplo");
  EXPECT_EQ(refusal(few), "lapack_dpotrf_ffi: takes 1 operands, found 0");
  EXPECT_EQ(refusal(size), "lapack_dpotrf_ffi: result 0: dimension of size 4 must be 3");
  EXPECT_EQ(refusal(layout).find("lapack_dpotrf_ffi: operand 0 lies in memory as f64[2,3,3]{2,1,0}, must be {1,2,0}"), 0u);
  EXPECT_EQ(refusal(unknown).find("nobody knows the custom call target lapack_dgetrx_ffi"), 0u);
  EXPECT_NE(refusal(sorted).find("a function that selects"), std::string::npos);
}

}  // namespace
}  // namespace hloom::library
