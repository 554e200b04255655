// Roots of unity and Fourier transforms in long double, for the tables that routines read.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace hloom::library {

using WideComplex = std::complex<long double>;

/// exp(-2πi·k/n), from an angle of at most an eighth of a turn, so that it is good to the last place and on the axes
/// exact. Needs: 0 <= k, n > 0.
WideComplex root_of_unity(std::int64_t k, std::int64_t n);

/// exp(-πi·k²/n): what Bluestein's convolution is made of.
WideComplex chirp(std::int64_t k, std::int64_t n);

/// The prime factors of n, smallest first. Needs: n > 0.
std::vector<std::int64_t> prime_factors(std::int64_t n);

/// X[k] = Σ_j x[j]·exp(-2πi·jk/n). Cost: n times the sum of n's prime factors.
std::vector<WideComplex> wide_transform(const std::vector<WideComplex>& x);

}  // namespace hloom::library
