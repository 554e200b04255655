#include "library/fft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "library/fft_pass.h"
#include "library/roots.h"

namespace hloom::library {
namespace {

using Dims = std::vector<std::int64_t>;
using Line = std::vector<WideComplex>;

std::int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies());
}

// By the definition, with roots of its own.
Line naive(const Line& x, bool inverse) {
  const std::size_t n = x.size();
  Line roots(n), out(n);
  for (std::size_t k = 0; k < n; ++k) {
    const long double angle = -2 * 3.14159265358979323846264338327950288L * static_cast<long double>(k) / static_cast<long double>(n);
    roots[k] = {std::cos(angle), inverse ? -std::sin(angle) : std::sin(angle)};
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j) out[k] += x[j] * roots[j * k % n];  // long double, so that the error is the transform's
    if (inverse) out[k] /= static_cast<long double>(n);
  }
  return out;
}

// Along dimension d of a row-major array.
void naive_dimension(Line& x, const Dims& dims, std::size_t d, bool inverse) {
  const std::int64_t n = dims[d], inner = product({dims.begin() + static_cast<std::ptrdiff_t>(d) + 1, dims.end()});
  const std::int64_t outer = n * inner == 0 ? 0 : product(dims) / (n * inner);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      Line line;
      for (std::int64_t e = 0; e < n; ++e) line.push_back(x[static_cast<std::size_t>((o * n + e) * inner + i)]);
      line = naive(line, inverse);
      for (std::int64_t e = 0; e < n; ++e) x[static_cast<std::size_t>((o * n + e) * inner + i)] = line[static_cast<std::size_t>(e)];
    }
}

// The first `kept` elements of each row, or the whole symmetric row of which these are the first half.
Line cut_rows(const Line& x, std::int64_t had, std::int64_t kept) {
  Line out;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (static_cast<std::int64_t>(i) % had < kept) out.push_back(x[i]);
  return out;
}
Line whole_rows(const Line& x, std::int64_t had, std::int64_t n) {
  Line out;
  for (std::size_t row = 0; row + static_cast<std::size_t>(had) <= x.size(); row += static_cast<std::size_t>(had))
    for (std::int64_t j = 0; j < n; ++j) {
      const WideComplex value = j <= n / 2 ? x[row + static_cast<std::size_t>(j)] : std::conj(x[row + static_cast<std::size_t>(n - j)]);
      out.push_back(j == 0 || 2 * j == n ? WideComplex(value.real()) : value);
    }
  return out;
}

Line want(const FftProblem& p, Line x) {
  Dims dims = p.dims;
  const std::size_t rank = dims.size();
  const bool inverse = p.kind == FftKind::Inverse || p.kind == FftKind::RealInverse;
  if (p.kind == FftKind::RealInverse) {
    for (std::size_t k = 1; k < p.lengths.size(); ++k) naive_dimension(x, dims, rank - 1 - k, true);
    x = whole_rows(x, dims.back(), p.lengths.back());
    dims.back() = p.lengths.back();
    naive_dimension(x, dims, rank - 1, true);
    return x;
  }
  for (std::size_t k = 0; k < p.lengths.size(); ++k) naive_dimension(x, dims, rank - 1 - k, inverse);
  return p.kind == FftKind::RealForward ? cut_rows(x, dims.back(), dims.back() / 2 + 1) : x;
}

bool real_in(const FftProblem& p) { return p.kind == FftKind::RealForward; }
bool real_out(const FftProblem& p) { return p.kind == FftKind::RealInverse; }

std::int64_t result_size(const FftProblem& p) {
  Dims dims = p.dims;
  if (real_in(p)) dims.back() = dims.back() / 2 + 1;
  if (real_out(p)) dims.back() = p.lengths.back();
  return product(dims);
}

template <typename T>
std::vector<T> numbers_of(const Line& x, bool real) {
  std::vector<T> out;
  for (const WideComplex& v : x) {
    out.push_back(static_cast<T>(v.real()));
    if (!real) out.push_back(static_cast<T>(v.imag()));
  }
  return out;
}

template <typename T>
Line line_of(const std::vector<T>& x, bool real) {
  Line out;
  for (std::size_t i = 0; i < x.size(); i += real ? 1 : 2) out.emplace_back(x[i], real ? T(0) : x[i + 1]);
  return out;
}

template <typename T>
std::vector<T> transformed(const FftProblem& p, std::vector<T> in) {
  std::vector<T> out(static_cast<std::size_t>(result_size(p)) * (real_out(p) ? 1 : 2), T(NAN));
  const RoutinePlan plan = plan_fft(p);
  EXPECT_EQ(plan.workspace_bytes, fft_workspace_bytes(p));
  EXPECT_TRUE(run(plan, {in.data()}, {out.data()}));
  return out;
}

// sqrt(Σ|got - want|²/Σ|want|²) in units of the type's epsilon.
template <typename T>
double relative_error(const Line& got, const Line& want) {
  long double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::norm(got[i] - want[i]);
    size += std::norm(want[i]);
  }
  if (size == 0) return error == 0 ? 0 : INFINITY;
  return static_cast<double>(std::sqrt(error / size)) / static_cast<double>(std::numeric_limits<T>::epsilon());
}

std::string name(const FftProblem& p) {
  std::string text = "kind " + std::to_string(static_cast<int>(p.kind)) + (p.is_double ? " f64" : " f32") + " dims";
  for (const std::int64_t d : p.dims) text += " " + std::to_string(d);
  return text + " rank " + std::to_string(p.lengths.size());
}

// The error of a transform grows with the number of its stages, of which each rounds a few times: three epsilons each are
// more than ever were, and a wrong twiddle is off by more than a thousand. A convolution has twice as many and a factor.
double allowed(const FftProblem& p) {
  double stages = 2;
  for (const std::int64_t n : p.lengths) stages += 2 * std::log2(static_cast<double>(n) + 1);
  return stages;
}

template <typename T>
void expect_values(const FftProblem& p, std::uint_fast32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Line x(static_cast<std::size_t>(product(p.dims)));
  for (WideComplex& v : x) v = {static_cast<T>(normal(random)), real_in(p) ? T(0) : static_cast<T>(normal(random))};
  const Line got = line_of(transformed(p, numbers_of<T>(x, real_in(p))), real_out(p));
  const Line expected = want(p, x);
  ASSERT_EQ(got.size(), expected.size()) << name(p);
  EXPECT_LE(relative_error<T>(got, expected), allowed(p)) << name(p);
}

void expect_values(FftProblem p, std::uint_fast32_t seed) {
  p.is_double = false;
  expect_values<float>(p, seed);
  p.is_double = true;
  expect_values<double>(p, seed);
}

// The operand of each kind for these real-side sizes.
FftProblem problem(FftKind kind, Dims dims, std::size_t rank) {
  FftProblem p;
  p.kind = kind;
  p.lengths.assign(dims.end() - static_cast<std::ptrdiff_t>(rank), dims.end());
  if (kind == FftKind::RealInverse && dims.back() > 0) dims.back() = dims.back() / 2 + 1;
  p.dims = std::move(dims);
  return p;
}

constexpr FftKind kKinds[] = {FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse};

TEST(Fft, EqualsTheDefinitionForAllShortLengths) {
  for (std::int64_t n = 1; n <= 200; ++n)
    for (const FftKind kind : kKinds) {
      expect_values(problem(kind, {n}, 1), 1);
      expect_values(problem(kind, {9, n}, 1), 2);
    }
}

TEST(Fft, EqualsTheDefinitionForLongLengths) {
  std::mt19937 random(7);
  for (const FftKind kind : kKinds) expect_values(problem(kind, {static_cast<std::int64_t>(201 + random() % 1800)}, 1), random());
  // Cut in two, with odd factors, a prime, twice a prime.
  for (const std::int64_t n : {2048, 3721, 4999, 2 * 2053}) expect_values(problem(FftKind::Forward, {n}, 1), random());
  for (const std::int64_t n : {2048, 2 * 1031}) expect_values(problem(FftKind::RealInverse, {n}, 1), random());
  expect_values(problem(FftKind::RealForward, {2500}, 1), random());
}

TEST(Fft, TakesBatchesAndDimensions) {
  for (const Dims& dims : {Dims{2, 3, 4}, Dims{5, 1, 7}, Dims{1, 16, 16}, Dims{3, 64, 20}, Dims{2, 67, 9}, Dims{20, 5, 71},
                           Dims{2, 71, 73}, Dims{3, 2, 128}, Dims{2, 100, 33}})
    for (const FftKind kind : kKinds)
      for (const std::size_t rank : {1u, 2u, 3u}) expect_values(problem(kind, dims, rank), 3);
}

TEST(Fft, LinesTooLongForACacheAreCut) {
  // More lines than lanes, each longer than a block's scratch holds; and convolutions beyond it.
  for (const Dims& dims : {Dims{8, 4098}, Dims{8, 2063}}) {
    const FftProblem p = problem(FftKind::Forward, dims, 1);
    EXPECT_GT(fft_workspace_bytes(p), 0);
    expect_values(p, 5);
  }
}

TEST(Fft, OfNothingIsNothing) {
  for (const FftKind kind : kKinds)
    for (const Dims& dims : {Dims{0}, Dims{0, 4}, Dims{4, 0}}) EXPECT_TRUE(plan_fft(problem(kind, dims, 1)).calls.empty());
}

TEST(Fft, InverseOfForwardIsTheOperand) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const std::int64_t n : {30'030, 65'536, 65'537, 99'991}) {
    std::vector<float> x(static_cast<std::size_t>(2 * n));
    for (float& v : x) v = normal(random);
    const std::vector<float> back = transformed(problem(FftKind::Inverse, {n}, 1), transformed(problem(FftKind::Forward, {n}, 1), x));
    EXPECT_LE(relative_error<float>(line_of(back, false), line_of(x, false)), 60) << n;
    std::vector<float> real(x.begin(), x.begin() + n);
    const std::vector<float> again =
        transformed(problem(FftKind::RealInverse, {n}, 1), transformed(problem(FftKind::RealForward, {n}, 1), real));
    EXPECT_LE(relative_error<float>(line_of(again, true), line_of(real, true)), 60) << n;
  }
}

TEST(Fft, InPlaceGivesTheSameBits) {
  for (const Dims& dims : {Dims{5, 12}, Dims{1, 1000}, Dims{4, 67}, Dims{1, 1009}, Dims{30, 40}}) {
    FftProblem p = problem(FftKind::Forward, dims, 2);
    std::vector<float> x(static_cast<std::size_t>(2 * product(dims)));
    std::iota(x.begin(), x.end(), 1.0f);
    const std::vector<float> apart = transformed(p, x);
    EXPECT_TRUE(run(plan_fft(p), {x.data()}, {x.data()}));
    EXPECT_EQ(x, apart) << name(p);
  }
}

TEST(Fft, BlocksInAnyOrderGiveTheSameBits) {
  FftProblem p = problem(FftKind::Forward, {40, 45}, 2);
  std::vector<float> x(static_cast<std::size_t>(2 * product(p.dims)));
  std::iota(x.begin(), x.end(), 1.0f);
  const std::vector<float> apart = transformed(p, x);
  std::vector<float> out(x.size());
  const RoutinePlan plan = plan_fft(p);
  for (const Routine& call : plan.calls) {
    base::AlignedBytes scratch(call.scratch_bytes);
    for (std::int64_t block = call.blocks - 1; block >= 0; --block) {
      void* buffers[] = {const_cast<std::byte*>(call.descriptor.data()),
                         call.arguments[1].kind == Argument::Kind::Operand ? x.data() : out.data(), out.data()};
      call.function(buffers, block, block + 1, scratch.data());
    }
  }
  EXPECT_EQ(out, apart);
}

// A line's values do not depend on what stands beside it: not on a NaN either.
TEST(Fft, LinesDoNotMix) {
  for (const FftKind kind : kKinds) {
    const FftProblem p = problem(kind, {3, 24}, 1);
    const std::size_t row = static_cast<std::size_t>(p.dims[1]) * (real_in(p) ? 1 : 2);
    std::vector<float> x(3 * row, 1.0f);
    x[row] = NAN;
    const std::vector<float> out = transformed(p, x);
    const std::size_t width = out.size() / 3;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (i / width != 1) {
        EXPECT_FALSE(std::isnan(out[i])) << name(p) << " at " << i;
      }
    EXPECT_TRUE(std::isnan(out[width]));
  }
}

TEST(Fft, AllVectorWidthsGiveTheSameBits) {
#if defined(__x86_64__)
  for (const FftKind kind : kKinds)
    for (const Dims& dims : {Dims{3, 30}, Dims{20, 49}, Dims{1, 1024}, Dims{40, 67}})
      for (const bool is_double : {false, true}) {
        FftProblem p = problem(kind, dims, 1);
        p.is_double = is_double;
        std::vector<float> x(static_cast<std::size_t>(4 * product(p.dims)));
        std::iota(x.begin(), x.end(), 1.0f);
        std::vector<std::vector<float>> results;
        for (const base::KernelFunction function : {run_fft_plain, run_fft_avx2, run_fft_avx512}) {
          if (function == run_fft_avx2 && !__builtin_cpu_supports("avx2")) continue;
          if (function == run_fft_avx512 && !__builtin_cpu_supports("avx512f")) continue;
          RoutinePlan plan = plan_fft(p);
          for (Routine& call : plan.calls) call.function = function;
          results.emplace_back(static_cast<std::size_t>(4 * result_size(p)));
          EXPECT_TRUE(run(plan, {x.data()}, {results.back().data()}));
          EXPECT_EQ(std::memcmp(results.back().data(), results.front().data(), 4 * results.front().size()), 0) << name(p);
        }
      }
#endif
}

}  // namespace
}  // namespace hloom::library
