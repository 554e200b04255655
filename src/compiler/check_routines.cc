#include "compiler/check_routines.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <sstream>
#include <vector>

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using Wide = std::complex<double>;

template <typename T>
std::vector<Wide> numbers(const Literal& x) {
  std::vector<Wide> out;
  for (const T& v : x.data<T>()) out.emplace_back(std::real(v), std::imag(v));
  return out;
}

std::vector<Wide> numbers_of(const Literal& x) {
  switch (x.dtype()) {
    case DType::F32: return numbers<float>(x);
    case DType::F64: return numbers<double>(x);
    case DType::C64: return numbers<std::complex<float>>(x);
    case DType::C128: return numbers<std::complex<double>>(x);
    default: return {};
  }
}

double epsilon(const Literal& x) { return real_type(x.dtype()) == DType::F64 ? 0x1p-52 : 0x1p-23; }

bool is_finite(const Wide& x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }

template <typename... Parts>
std::string words(const Parts&... parts) {
  std::ostringstream text;
  text.precision(9);
  (text << ... << parts);
  return std::move(text).str();
}

double largest(const Literal& x) {
  return real_type(x.dtype()) == DType::F64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
}

// Numbers on the way are up to n times the norm: a transform may overflow though its result does not.
// sqrt(Σ|got - want|²) ≤ (4 + 4·Σ log2 n)·eps·sqrt(Σ|want|²) for each transform; a convolution has four times the stages.
std::optional<std::string> transform_differs(const Instruction& i, const Literal& got, const Literal& want) {
  const std::vector<Wide> a = numbers_of(got), b = numbers_of(want);
  std::size_t size = 1;
  double stages = 1;
  const auto& lengths = i.attr<hlo::FftAttr>().length;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    size *= static_cast<std::size_t>(want.shape().dims().end()[-1 - static_cast<std::ptrdiff_t>(k)]);
    stages += std::log2(static_cast<double>(lengths[k]) + 1);
  }
  for (std::size_t first = 0; size > 0 && first + size <= b.size(); first += size) {
    double error = 0, total = 0;
    bool finite = true;
    for (std::size_t e = first; e < first + size; ++e) {
      error += std::norm(a[e] - b[e]);
      total += std::norm(b[e]);
      finite = finite && is_finite(b[e]);
    }
    const bool overflows = std::sqrt(total) * static_cast<double>(size) > largest(want);
    if (!finite || overflows || std::sqrt(error) <= 4 * stages * epsilon(got) * std::sqrt(total)) continue;
    return words("transform ", first / size, ": off by ", std::sqrt(error / total), " of its norm, allowed ", 4 * stages * epsilon(got));
  }
  return std::nullopt;
}

/// Square or not, row-major, one of a batch.
struct View {
  const Wide* x;
  std::int64_t columns;
  Wide operator()(std::int64_t i, std::int64_t j) const { return x[i * columns + j]; }
};

double largest_of(const std::vector<Wide>& x) {
  double most = 0;
  for (const Wide& e : x)
    if (is_finite(e)) most = std::max(most, std::abs(e));
  return most;
}

// The smallest number that is not zero: what is rounded to so few digits is off by as much.
double smallest(const Literal& x) {
  return real_type(x.dtype()) == DType::F64 ? std::numeric_limits<double>::denorm_min()
                                            : static_cast<double>(std::numeric_limits<float>::denorm_min());
}

// |Σ terms - wanted| ≤ 8·(terms + 1)·(eps·Σ|terms| + least).
bool sums_to(std::int64_t terms, const std::function<Wide(std::int64_t)>& term, Wide wanted, double eps, double least) {
  Wide sum = 0;
  double magnitude = std::abs(wanted);
  for (std::int64_t k = 0; k < terms; ++k) {
    const Wide t = term(k);
    sum += t;
    magnitude += std::abs(t);
  }
  return !std::isfinite(magnitude) || std::abs(sum - wanted) <= 8 * static_cast<double>(terms + 1) * (eps * magnitude + least);
}

// Whether a pivot is as small as what rounding leaves of it, so that it may as well be none.
bool is_singular(const View& factor, const View& matrix, double eps) {
  double smallest = INFINITY, most = 0;
  for (std::int64_t k = 0; k < factor.columns; ++k) {
    smallest = std::min(smallest, std::norm(factor(k, k)));
    most = std::max(most, std::abs(matrix(k, k)));
  }
  return smallest <= 8 * static_cast<double>(factor.columns) * eps * most;
}

std::optional<std::string> factor_differs(const Instruction& i, const Literal& operand, const Literal& got, const Literal& want) {
  const std::vector<Wide> a = numbers_of(operand), l = numbers_of(got), other = numbers_of(want);
  const std::int64_t n = got.shape().dims().back();
  const double least = smallest(got) * (1 + largest_of(l));
  const bool lower = i.attr<hlo::CholeskyAttr>().lower;
  for (std::size_t first = 0; n > 0 && first < l.size(); first += static_cast<std::size_t>(n * n)) {
    const View from{a.data() + first, n}, to{l.data() + first, n};
    const bool none = std::isnan(to(0, 0).real());
    if (none != std::isnan(other[first].real())) {
      if (is_singular(View{(none ? other : l).data() + first, n}, from, epsilon(got))) continue;
      return words("matrix ", first / static_cast<std::size_t>(n * n), ": is ", none ? "not " : "", "positive definite here, and there it is the other way");
    }
    if (none) continue;
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t c = 0; c < n; ++c) {
        if (r != c && (r > c) != lower) {
          if (to(r, c) != Wide(0)) return words("element [", r, ",", c, "] of the other triangle is ", to(r, c));
          continue;
        }
        const Wide wanted = r == c ? Wide(from(r, c).real()) : from(r, c);
        const auto term = [&](std::int64_t k) { return lower ? to(r, k) * std::conj(to(c, k)) : std::conj(to(k, r)) * to(k, c); };
        if (!sums_to(n, term, wanted, epsilon(got), least))
          return words("matrix ", first / static_cast<std::size_t>(n * n), ": element [", r, ",", c, "] of the factor's product is not ", wanted);
      }
  }
  return std::nullopt;
}

std::optional<std::string> solution_differs(const Instruction& i, std::span<const Literal> operands, const Literal& got) {
  const auto& attr = i.attr<hlo::TriangularSolveAttr>();
  const std::vector<Wide> a = numbers_of(operands[0]), b = numbers_of(operands[1]), x = numbers_of(got);
  const std::int64_t rows = got.shape().dims().end()[-2], columns = got.shape().dims().back(), n = attr.left_side ? rows : columns;
  const double least = smallest(got) * (1 + largest_of(a));
  for (std::int64_t matrix = 0; rows * columns > 0 && matrix * rows * columns < std::ssize(x); ++matrix) {
    const View triangle{a.data() + matrix * n * n, n}, right{b.data() + matrix * rows * columns, columns}, to{x.data() + matrix * rows * columns, columns};
    const auto op = [&](std::int64_t r, std::int64_t c) -> Wide {
      if (r == c && attr.unit_diagonal) return 1;
      if (attr.transpose_a != hlo::Transposition::None) std::swap(r, c);
      if (r != c && (r > c) != attr.lower) return 0;
      return attr.transpose_a == hlo::Transposition::Adjoint ? std::conj(triangle(r, c)) : triangle(r, c);
    };
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto term = [&](std::int64_t k) { return attr.left_side ? op(r, k) * to(k, c) : to(r, k) * op(k, c); };
        if (!sums_to(n, term, right(r, c), epsilon(got), least))
          return words("system ", matrix, ": element [", r, ",", c, "] of the product is not ", right(r, c));
      }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> differs_as_routine(const Instruction& i, std::span<const Literal> operands, const Literal& got,
                                              const Literal& want) {
  switch (i.opcode()) {
    case Opcode::Fft: return transform_differs(i, got, want);
    case Opcode::Cholesky: return factor_differs(i, operands[0], got, want);
    case Opcode::TriangularSolve: return solution_differs(i, operands, got);
    default: return std::nullopt;
  }
}

}  // namespace hloom::compiler
