// Numbers in text.
#pragma once

#include <cstdint>

namespace hloom::text {

/// An integer as written: -18446744073709551615 … 18446744073709551615.
struct WrittenInteger {
  const char* end = nullptr;  ///< after the last digit; where it began if there is none
  bool negative = false;
  bool overflow = false;      ///< the magnitude does not fit in 64 bits
  std::uint64_t magnitude = 0;

  /// Fits in s64, or would as u64's bits (up to 2^64 - 1).
  bool fits() const { return !overflow && (!negative || magnitude <= 1ull << 63); }
  std::uint64_t bits() const { return negative ? 0 - magnitude : magnitude; }
};

/// Reads `-?[0-9]+` at `p`.
inline WrittenInteger scan_integer(const char* p, const char* end) {
  WrittenInteger n;
  const char* const start = p;
  if (p < end && *p == '-') {
    n.negative = true;
    ++p;
  }
  const char* const digits = p;
  for (; p < end; ++p) {
    const auto digit = static_cast<std::uint64_t>(static_cast<unsigned char>(*p)) - '0';
    if (digit > 9) break;
    // 19 digits always fit.
    if (p - digits >= 19 && (__builtin_mul_overflow(n.magnitude, 10, &n.magnitude) ||
                             __builtin_add_overflow(n.magnitude, digit, &n.magnitude)))
      n.overflow = true;
    else if (p - digits < 19)
      n.magnitude = n.magnitude * 10 + digit;
  }
  n.end = p == digits ? start : p;
  return n;
}

/// A decimal number, rounded once to T (float or double).
template <typename T>
struct WrittenDecimal {
  const char* end = nullptr;  ///< where it began if there is none
  bool overflow = false;      ///< rounds to infinity
  T value = 0;
};

/// Reads digits with an optional point and exponent, and a leading minus, at `p`: `1`, `-1.5e3`, `.5`, `1.`.
template <typename T>
WrittenDecimal<T> scan_decimal(const char* p, const char* end);

extern template WrittenDecimal<float> scan_decimal(const char*, const char*);
extern template WrittenDecimal<double> scan_decimal(const char*, const char*);

}  // namespace hloom::text
