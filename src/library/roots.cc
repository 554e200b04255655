#include "library/roots.h"

#include <cmath>

namespace hloom::library {
namespace {

constexpr long double kPi = 3.14159265358979323846264338327950288L;

WideComplex product(WideComplex a, WideComplex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The points first, first + step, … of x transformed into `out`. `roots` are those of x's size, `turn` apart here.
void transform(const std::vector<WideComplex>& x, std::size_t first, std::size_t step, std::size_t n,
               const std::vector<WideComplex>& roots, WideComplex* out) {
  if (n == 1) {
    *out = x[first];
    return;
  }
  const auto r = static_cast<std::size_t>(prime_factors(static_cast<std::int64_t>(n))[0]);
  const std::size_t part = n / r;
  for (std::size_t m = 0; m < r; ++m) transform(x, first + m * step, step * r, part, roots, out + m * part);
  std::vector<WideComplex> column(r);
  for (std::size_t k = 0; k < part; ++k) {
    for (std::size_t m = 0; m < r; ++m) column[m] = out[m * part + k];
    for (std::size_t q = 0; q < r; ++q) {
      WideComplex sum = 0;
      for (std::size_t m = 0; m < r; ++m) sum += product(column[m], roots[m * (k + q * part) % n * step]);
      out[q * part + k] = sum;
    }
  }
}

}  // namespace

WideComplex root_of_unity(std::int64_t k, std::int64_t n) {
  k %= n;
  // 8k/n = octant + rest; the rest, or what it lacks to a whole eighth, is the angle; turns by quarters are exact.
  const std::int64_t octant = 8 * k / n, rest = 8 * k - octant * n;
  const bool odd = (octant & 1) != 0;
  const long double angle = kPi * static_cast<long double>(odd ? n - rest : rest) / (4 * static_cast<long double>(n));
  long double c = std::cos(angle), s = std::sin(angle);
  if (odd) std::swap(c, s);
  for (std::int64_t quarter = 0; quarter < octant / 2; ++quarter) {
    const long double turned = -s;
    s = c;
    c = turned;
  }
  return {c, -s};
}

WideComplex chirp(std::int64_t k, std::int64_t n) {
  const auto square = static_cast<std::int64_t>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) %
                                                static_cast<unsigned __int128>(2 * n));
  return root_of_unity(square, 2 * n);
}

std::vector<std::int64_t> prime_factors(std::int64_t n) {
  std::vector<std::int64_t> factors;
  for (std::int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) factors.push_back(p);
  if (n > 1) factors.push_back(n);
  return factors;
}

std::vector<WideComplex> wide_transform(const std::vector<WideComplex>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<WideComplex> roots, out(x.size());
  for (std::int64_t k = 0; k < n; ++k) roots.push_back(root_of_unity(k, n));
  if (n > 0) transform(x, 0, 1, x.size(), roots, out.data());
  return out;
}

}  // namespace hloom::library
