// The builder that computes: a Value<CppBuilder, T> is a T.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

#include "functions/value.h"

namespace hloom::functions {

/// Plain C++ numbers. Stateless. Needs: the default rounding mode, no flushing of denormals, -ffp-contract=off.
struct CppBuilder {
  template <class T>
  using Raw = T;

  using Any = std::uint64_t;  ///< bits, the upper ones 0
  template <class T>
  T from_any(Any x) {
    if constexpr (std::is_same_v<T, bool>)
      return (x & 1) != 0;
    else
      return std::bit_cast<T>(static_cast<UnsignedOf<T>>(x));
  }
  template <class T>
  Any to_any(T x) {
    return std::bit_cast<UnsignedOf<T>>(x);
  }

  template <class T>
  T constant(T x) {
    return x;
  }

  // Integers go through uint64_t so that nothing overflows or is promoted to a signed type.
  template <class T>
  static std::uint64_t wide(T x) {
    return static_cast<std::uint64_t>(x);
  }
  template <class T>
  T add(T x, T y) {
    if constexpr (is_real<T>)
      return x + y;
    else
      return static_cast<T>(wide(x) + wide(y));
  }
  template <class T>
  T sub(T x, T y) {
    if constexpr (is_real<T>)
      return x - y;
    else
      return static_cast<T>(wide(x) - wide(y));
  }
  template <class T>
  T mul(T x, T y) {
    if constexpr (is_real<T>)
      return x * y;
    else
      return static_cast<T>(wide(x) * wide(y));
  }
  template <class T>
  T div(T x, T y) {
    return static_cast<T>(x / y);
  }
  template <class T>
  T rem(T x, T y) {
    return static_cast<T>(x % y);
  }
  template <class T>
  T bit_and(T x, T y) {
    return static_cast<T>(x & y);
  }
  template <class T>
  T bit_or(T x, T y) {
    return static_cast<T>(x | y);
  }
  template <class T>
  T bit_xor(T x, T y) {
    return static_cast<T>(x ^ y);
  }
  template <class T>
  T shift_left(T x, T y) {
    return static_cast<T>(wide(x) << y);
  }
  template <class T>
  T shift_right(T x, T y) {
    return static_cast<T>(x >> y);
  }

  template <class T>
  bool equal(T x, T y) {
    return x == y;
  }
  template <class T>
  bool not_equal(T x, T y) {
    return x != y;
  }
  template <class T>
  bool less(T x, T y) {
    return x < y;
  }
  template <class T>
  bool less_equal(T x, T y) {
    return x <= y;
  }
  template <class T>
  T select(bool condition, T yes, T no) {
    return condition ? yes : no;
  }

  template <class T>
  T negate(T x) {
    return -x;
  }
  template <class T>
  T fma(T x, T y, T z) {
    return std::fma(x, y, z);
  }
  template <class T>
  T sqrt(T x) {
    return std::sqrt(x);
  }
  template <class T>
  T abs(T x) {
    return std::fabs(x);
  }
  template <class T>
  T floor(T x) {
    return std::floor(x);
  }
  template <class T>
  T ceil(T x) {
    return std::ceil(x);
  }
  template <class T>
  T trunc(T x) {
    return std::trunc(x);
  }
  template <class T>
  T round_even(T x) {
    return std::nearbyint(x);
  }

  template <class To, class T>
  To bits_as(T x) {
    return std::bit_cast<To>(x);
  }
  template <class To, class T>
  To resize(T x) {
    return static_cast<To>(x);
  }
  template <class To, class T>
  To to_real(T x) {
    return static_cast<To>(x);
  }
  template <class To, class T>
  To to_integer(T x) {
    // 2^(bits of the magnitude) is exact in every float; MAX itself might round up to it.
    constexpr int magnitude_bits = std::numeric_limits<To>::digits;
    const T end = std::ldexp(T{1}, magnitude_bits);
    if (x != x) return 0;
    if (x >= end) return std::numeric_limits<To>::max();
    if (x <= (std::is_signed_v<To> ? -end : T{0})) return std::numeric_limits<To>::min();
    return static_cast<To>(x);
  }

  template <class T>
  T count_ones(T x) {
    return static_cast<T>(std::popcount(static_cast<UnsignedOf<T>>(x)));
  }
  template <class T>
  T count_leading_zeros(T x) {
    return static_cast<T>(std::countl_zero(static_cast<UnsignedOf<T>>(x)));
  }

  template <class T, class X, class Rare>
  T rarely(bool condition, T common, X x, Rare rare) {
    return condition ? rare(Value<CppBuilder, X>{this, x}).raw : common;
  }
  template <class T>
  T entry(std::span<const T> table, std::uint64_t index) {
    return table[index];
  }
  template <class T, class GoingOn, class Step>
  T repeat_while(T state, GoingOn going_on, Step step) {
    while (going_on(state)) state = step(state);
    return state;
  }
};

}  // namespace hloom::functions
