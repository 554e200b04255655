// Operands to measure functions on: all sizes, and more of them where functions change.
#pragma once

#include <complex>
#include <random>

namespace hloom::measure {

using Random = std::mt19937_64;

/// By exponent, and every other one where the values of functions lie.
double some_double(Random&);
struct Pair {
  double x, y;
};
/// Half of the pairs have x^y within the range of floats or doubles.
Pair some_pair(Random&, bool floats);
std::complex<double> some_complex(Random&);
/// An exponent for x whose power is neither infinite nor zero: |exponent·log x| is at most `largest_log`.
std::complex<double> some_exponent(Random&, std::complex<double> x, double largest_log);

/// Doubles known to be hard: x whose e^x or log is nearly halfway between doubles (Lefèvre and Muller, "Worst cases for
/// correct rounding of the elementary functions in double precision", 2001), and the one nearest to a multiple of π/2.
inline constexpr double kHard[] = {0x1.9E9CBBFD6080Bp-31, 0x1.62A88613629B5p+678, 0x1.6AC5B262CA1FFp+849};

}  // namespace hloom::measure
