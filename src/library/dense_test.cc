#include "library/dense.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "library/lapack_library.h"

namespace hloom::library {
namespace {

using Form = TriangularProblem::Form;
using Wide = std::complex<double>;
using Matrix = std::vector<Wide>;  // row-major

constexpr DType kTypes[] = {DType::F32, DType::F64, DType::C64, DType::C128};

template <typename F>
void with_type(DType type, const F& f) {
  switch (type) {
    case DType::F32: return f(float());
    case DType::F64: return f(double());
    case DType::C64: return f(std::complex<float>());
    default: return f(std::complex<double>());
  }
}

template <typename T>
std::vector<T> narrowed(const Matrix& x) {
  std::vector<T> out;
  for (const Wide& v : x) {
    if constexpr (ElementOf<T>::kComplex) out.emplace_back(static_cast<RealOf<T>>(v.real()), static_cast<RealOf<T>>(v.imag()));
    else out.push_back(static_cast<T>(v.real()));
  }
  return out;
}
template <typename T>
Matrix widened(const std::vector<T>& x) {
  Matrix out;
  for (const T& v : x) out.emplace_back(std::real(v), std::imag(v));
  return out;
}

double epsilon(DType type) { return real_type(type) == DType::F32 ? 1.2e-7 : 2.3e-16; }

// Runs the plan; garbage in what is not to be read does no harm.
template <typename T>
std::vector<T> run_on(const Expected<RoutinePlan>& plan, std::vector<std::vector<T>> operands, std::size_t size, int in_place = -1) {
  EXPECT_TRUE(plan);
  std::vector<T> out(size, T(77));
  std::vector<void*> from;
  for (auto& o : operands) from.push_back(o.data());
  void* to = in_place >= 0 ? from[static_cast<std::size_t>(in_place)] : out.data();
  EXPECT_TRUE(run(*plan, from, {to}));
  return in_place >= 0 ? operands[static_cast<std::size_t>(in_place)] : out;
}

Matrix random_matrix(std::int64_t rows, std::int64_t columns, DType type, std::uint_fast32_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::uniform_real_distribution<double> uniform(-1, 1);
  Matrix x(static_cast<std::size_t>(rows * columns));
  for (Wide& v : x) v = {uniform(random), is_complex(type) ? uniform(random) : 0.0};
  return x;
}

Wide at(const Matrix& a, std::int64_t n, std::int64_t i, std::int64_t j) { return a[static_cast<std::size_t>(i * n + j)]; }

// g·gᴴ + n·1, of which the triangle that is not to be read is NaN.
Matrix positive_definite(std::int64_t n, DType type, bool lower) {
  const Matrix g = random_matrix(n, n, type, 5 + static_cast<std::uint_fast32_t>(n));
  Matrix a(g.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Wide sum = i == j ? static_cast<double>(n) : 0;
      for (std::int64_t k = 0; k < n; ++k) sum += at(g, n, i, k) * std::conj(at(g, n, j, k));
      a[static_cast<std::size_t>(i * n + j)] = i == j || (i > j) == lower ? sum : Wide(NAN, NAN);
    }
  return a;
}

// L·Lᴴ is the matrix, to rounding; the other triangle is zero.
void expect_factor(const Matrix& l, const Matrix& a, std::int64_t n, bool lower, DType type) {
  const double bound = 8 * static_cast<double>(n + 1) * epsilon(type) * 2 * static_cast<double>(n + 1);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      if (i != j && (i > j) != lower) {
        ASSERT_EQ(at(l, n, i, j), Wide(0));
        continue;
      }
      Wide sum = 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += lower ? at(l, n, i, k) * std::conj(at(l, n, j, k)) : std::conj(at(l, n, k, i)) * at(l, n, k, j);
      ASSERT_LE(std::abs(sum - at(a, n, i, j)), bound) << n << " at " << i << ", " << j;
    }
}

TEST(Cholesky, FactorTimesItsAdjointIsTheMatrix) {
  for (const DType type : kTypes)
    for (const std::int64_t n : {1, 2, 3, 5, 31, 32, 33, 47, 48, 65, 130})
      for (const bool lower : {true, false})
        for (const DenseWay way : {DenseWay::Best, DenseWay::Own})
          with_type(type, [&]<typename T>(T) {
            const std::vector<T> a = narrowed<T>(positive_definite(n, type, lower));
            const auto l = run_on<T>(plan_cholesky({type, 1, n, lower}, way), {a}, a.size());
            expect_factor(widened(l), widened(a), n, lower, type);
            EXPECT_EQ(run_on<T>(plan_cholesky({type, 1, n, lower}, way), {a}, a.size(), 0), l);
          });
}

TEST(Cholesky, WhatIsNotPositiveDefiniteIsNaNAndNothingElse) {
  for (const std::int64_t n : {2, 5, 60})
    for (const bool lower : {true, false})
      for (const DenseWay way : {DenseWay::Best, DenseWay::Own})
        for (const double bad : {-1.0, 0.0, static_cast<double>(NAN)}) {
          std::vector<double> a;
          for (int matrix = 0; matrix < 3; ++matrix)
            for (std::int64_t i = 0; i < n * n; ++i) a.push_back(i % (n + 1) == 0 ? (matrix == 1 && i == n * n - 1 ? bad : 4.0) : 0.0);
          const auto l = run_on<double>(plan_cholesky({DType::F64, 3, n, lower}, way), {a}, a.size());
          for (std::size_t i = 0; i < l.size(); ++i) {
            const auto place = static_cast<std::int64_t>(i) % (n * n);
            if (static_cast<std::int64_t>(i) / (n * n) == 1) {
              EXPECT_TRUE(std::isnan(l[i]));
            } else {
              EXPECT_EQ(l[i], place % (n + 1) == 0 ? 2.0 : 0.0);
            }
          }
        }
}

TEST(Cholesky, OfNothingIsNothing) {
  EXPECT_TRUE(plan_cholesky({DType::F32, 3, 0, true})->calls.empty());
  EXPECT_TRUE(plan_cholesky({DType::F32, 0, 3, true})->calls.empty());
  EXPECT_EQ(plan_cholesky({DType::S32, 1, 3, true}).error().code(), Code::Unimplemented);
}

// Well-conditioned: small beside the diagonal, which is about 2. The rest is NaN, and so is a unit diagonal.
Matrix triangle(const TriangularProblem& p) {
  const std::int64_t n = p.order();
  Matrix a = random_matrix(n, n, p.type, 17);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Wide& x = a[static_cast<std::size_t>(i * n + j)];
      if (i == j) x = p.unit_diagonal ? Wide(NAN, NAN) : x * 0.3 + 2.0;
      else x = (i > j) == p.lower ? x / static_cast<double>(n) : Wide(NAN, NAN);
    }
  return a;
}

// An element of op(a) that may be read.
Wide element(const Matrix& a, const TriangularProblem& p, std::int64_t i, std::int64_t j) {
  if (i == j && p.unit_diagonal) return 1;
  if (p.form != Form::Plain) std::swap(i, j);
  if (i != j && (i > j) != p.lower) return 0;
  const Wide x = at(a, p.order(), i, j);
  return p.form == Form::Adjoint ? std::conj(x) : x;
}

void expect_solution(const Matrix& a, const Matrix& x, const Matrix& b, const TriangularProblem& p) {
  const double bound = 16 * static_cast<double>(p.order() + 1) * epsilon(p.type);
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.columns; ++j) {
      Wide sum = 0;
      for (std::int64_t k = 0; k < p.order(); ++k)
        sum += p.left ? element(a, p, i, k) * at(x, p.columns, k, j) : at(x, p.columns, i, k) * element(a, p, k, j);
      ASSERT_LE(std::abs(sum - at(b, p.columns, i, j)), bound) << p.order() << " left " << p.left << " lower " << p.lower;
    }
}

void expect_solves(const TriangularProblem& p) {
  for (const DenseWay way : {DenseWay::Best, DenseWay::Own})
    with_type(p.type, [&]<typename T>(T) {
      const std::vector<T> a = narrowed<T>(triangle(p)), b = narrowed<T>(random_matrix(p.rows, p.columns, p.type, 23));
      const auto x = run_on<T>(plan_triangular_solve(p, way), {a, b}, b.size());
      expect_solution(widened(a), widened(x), widened(b), p);
      EXPECT_EQ(run_on<T>(plan_triangular_solve(p, way), {a, b}, b.size(), 1), x);
    });
}

TEST(TriangularSolve, AllFormsHaveSmallResiduals) {
  for (const DType type : kTypes)
    for (const std::int64_t n : {1, 2, 7, 50, 70})
      for (const std::int64_t others : {1, 3, 8})
        for (const bool left : {true, false})
          for (const bool lower : {true, false})
            for (const bool unit : {true, false})
              for (const Form form : {Form::Plain, Form::Transposed, Form::Adjoint}) {
                TriangularProblem p{type, 1, left ? n : others, left ? others : n, left, lower, unit, form};
                expect_solves(p);
              }
}

TEST(TriangularSolve, ManyRightHandSidesAreSeveralBlocks) {
  for (const std::int64_t n : {5, 60})
    for (const bool left : {true, false}) {
      TriangularProblem p{DType::F32, 1, left ? n : 700, left ? 700 : n, left, true, false, Form::Plain};
      EXPECT_EQ(plan_triangular_solve(p)->calls[0].blocks, 3);
      expect_solves(p);
    }
}

TEST(TriangularSolve, AZeroOnTheDiagonalGivesNoNumber) {
  const std::vector<double> a = {0, 0, 1, 2}, b = {1, 0};
  TriangularProblem p{DType::F64, 1, 2, 1, true, true, false, Form::Plain};
  const auto x = run_on<double>(plan_triangular_solve(p), {a, b}, 2);
  EXPECT_TRUE(std::isinf(x[0]));
  EXPECT_FALSE(std::isfinite(x[1]));
}

TEST(TriangularSolve, OfNothingIsNothing) {
  EXPECT_TRUE(plan_triangular_solve({DType::F32, 2, 0, 3})->calls.empty());
  EXPECT_TRUE(plan_triangular_solve({DType::F32, 2, 3, 0})->calls.empty());
  EXPECT_TRUE(plan_triangular_solve({DType::F32, 0, 3, 2})->calls.empty());
}

}  // namespace
}  // namespace hloom::library
