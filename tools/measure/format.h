// Floating-point formats, and distances in their last places.
#pragma once

#include <algorithm>
#include <cmath>

namespace hloom::measure {

struct Format {
  const char* name;
  int digits;        ///< of the significand
  int min_exponent;  ///< 2^min_exponent is the smallest normal number
  int max_exponent;  ///< 2^max_exponent is the first number that is too large
};
inline constexpr Format kF16{"f16", 11, -14, 16}, kBF16{"bf16", 8, -126, 128}, kF32{"f32", 24, -126, 128},
    kF64{"f64", 53, -1022, 1024};

/// The last place of numbers of this size. Below the normal ones it is that of the smallest.
inline long double last_place(const Format& f, long double size) {
  const int exponent = size == 0 ? f.min_exponent : std::max(std::ilogb(size), f.min_exponent);
  return std::ldexp(1.0L, std::min(exponent, f.max_exponent - 1) - f.digits + 1);
}

/// What an infinite result is taken for: the number that it was rounded from at the least.
inline long double finite(const Format& f, long double x) {
  const long double end = std::ldexp(1.0L, f.max_exponent);
  return std::clamp(x, -end, end);
}

/// |got - want| in last places of `want`; two NaNs are at no distance, a NaN and a number at an infinite one.
inline double distance(const Format& f, long double got, long double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : INFINITY;
  const long double a = finite(f, got), b = finite(f, want);
  return static_cast<double>(std::fabs(a - b) / last_place(f, b));
}

}  // namespace hloom::measure
