#include "samples.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace hloom::measure {
namespace {

double unit(Random& random) { return std::ldexp(static_cast<double>(random() >> 11), -53); }
double sign(Random& random) { return (random() & 1) != 0 ? -1 : 1; }
// 2^e·(1 + u), e uniform.
double of_exponents(Random& random, double from, double to) {
  const double e = std::floor(from + (to - from) * unit(random));
  return std::ldexp(1 + unit(random), static_cast<int>(e));
}
double near(Random& random, double x) { return x + sign(random) * of_exponents(random, -52, -2); }

}  // namespace

double some_double(Random& random) {
  constexpr double kHalfPi = 1.5707963267948966;
  switch (random() % 8) {
    case 0:
    case 1: return sign(random) * of_exponents(random, -30, 12);
    case 2: return sign(random) * near(random, 1);
    case 3: return near(random, kHalfPi * std::floor(unit(random) * 0x1p20));
    case 4: return sign(random) * unit(random) * 750;
    default: return std::bit_cast<double>(static_cast<std::uint64_t>(random()));
  }
}

Pair some_pair(Random& random, bool floats) {
  const double least = floats ? -150 : -1080, most = floats ? 129 : 1025;
  if (random() % 4 != 0) {
    const double x = random() % 2 == 0 ? of_exponents(random, floats ? -149 : -1074, floats ? 128 : 1024) : near(random, 1);
    return {x, (least + (most - least) * unit(random)) / std::log2(x)};
  }
  if (!floats)
    return {std::bit_cast<double>(static_cast<std::uint64_t>(random())), std::bit_cast<double>(static_cast<std::uint64_t>(random()))};
  const auto bits = [&] { return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(random()))); };
  return {bits(), random() % 2 == 0 ? bits() : std::round(64 * (unit(random) - 0.5))};
}

std::complex<double> some_complex(Random& random) {
  const double a = 6.283185307179586 * unit(random);
  switch (random() % 6) {
    case 0: return {sign(random) * of_exponents(random, -60, 60), sign(random) * of_exponents(random, -60, 60)};
    case 1: return {sign(random) * of_exponents(random, -4, 5), sign(random) * of_exponents(random, -4, 5)};
    case 2: return std::polar(near(random, 1), a);
    case 3: return std::complex<double>(sign(random)) + std::polar(of_exponents(random, -40, -1), a);
    case 4: return std::complex<double>(0, sign(random)) + std::polar(of_exponents(random, -40, -1), a);
    default: return {sign(random) * 20 * unit(random), sign(random) * 20 * unit(random)};
  }
}

std::complex<double> some_exponent(Random& random, std::complex<double> x, double largest_log) {
  const std::complex<double> y = some_complex(random);
  const double log = std::abs(y * std::log(x));
  return log <= largest_log ? y : y * (largest_log / log * unit(random));
}

}  // namespace hloom::measure
