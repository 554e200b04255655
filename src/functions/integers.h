// Integer operations with HLO's answers where C++ and LLVM have none.
#pragma once

#include <limits>

#include "functions/value.h"

namespace hloom::functions {

/// Truncated quotient; x/0 has all bits set, MIN/-1 is MIN.
template <class B, class T>
  requires std::integral<T>
Value<B, T> divide(Value<B, T> x, Value<B, T> y) {
  const auto zero = y == y(0);
  auto unsafe = zero;
  if constexpr (std::is_signed_v<T>) unsafe = zero | (y == y(T{-1}));
  const Value<B, T> quotient = x / select(unsafe, T{1}, y);
  if constexpr (std::is_signed_v<T>)
    return select(zero, T{-1}, select(unsafe, -x, quotient));
  else
    return select(zero, static_cast<T>(-1), quotient);
}

/// The remainder with the sign of x; x rem 0 is x, MIN rem -1 is 0.
template <class B, class T>
  requires std::integral<T>
Value<B, T> remainder(Value<B, T> x, Value<B, T> y) {
  const auto zero = y == y(0);
  if constexpr (std::is_signed_v<T>) {
    const auto minus_one = y == y(T{-1});
    return select(zero, x, x % select(zero | minus_one, T{1}, y));
  } else {
    return select(zero, x, x % select(zero, T{1}, y));
  }
}

/// x^y modulo 2^bits; for y < 0: 1 if x is 1, else 0. Square and multiply.
template <class B, class T>
  requires std::integral<T>
Value<B, T> power(Value<B, T> x, Value<B, T> y) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  Value<B, T> result = x(T{1}), square = x;
  for (int i = 0; i < kBits; ++i) {
    const auto bit = (y & static_cast<T>(T{1} << i)) != y(0);
    result = select(bit, result * square, result);
    square = square * square;
  }
  if constexpr (std::is_signed_v<T>) result = select(y < T{0}, select(x == x(T{1}), x, T{0}), result);
  return result;
}

/// The upper half of the product, signed or unsigned as T is.
template <class B, class T>
  requires(std::integral<T> && sizeof(T) < 8)
Value<B, T> multiply_high(Value<B, T> x, Value<B, T> y) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  constexpr Wide kBits = 8 * sizeof(T);
  return resize<T>((resize<Wide>(x) * resize<Wide>(y)) >> kBits);
}
/// Of 64 bits, in four products of halves. A negative factor counts 2^64 too much in the unsigned product.
template <class B, class T>
  requires(std::integral<T> && sizeof(T) == 8)
Value<B, T> multiply_high(Value<B, T> x, Value<B, T> y) {
  using Word = Value<B, std::uint64_t>;
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  const Word a = resize<std::uint64_t>(x), b = resize<std::uint64_t>(y);
  const Word a0 = a & kLow, a1 = a >> 32, b0 = b & kLow, b1 = b >> 32;
  const Word cross = a1 * b0 + ((a0 * b0) >> 32);
  const Word other = a0 * b1 + (cross & kLow);
  Word high = a1 * b1 + (cross >> 32) + (other >> 32);
  if constexpr (std::is_signed_v<T>)
    high = high - select(x < T{0}, b, std::uint64_t{0}) - select(y < T{0}, a, std::uint64_t{0});
  return resize<T>(high);
}

/// Shifts of a `width`-bit integer by a count read as unsigned; counts of `width` and more give 0, or the sign.
template <class B, class T>
Value<B, T> shift_left(Value<B, T> x, Value<B, T> count, int width) {
  const auto n = bits(count);
  const auto in_range = n < n(static_cast<UnsignedOf<T>>(width));
  return select(in_range, x << resize<T>(select(in_range, n, UnsignedOf<T>{0})), T{0});
}
template <class B, class T>
Value<B, T> shift_right_logical(Value<B, T> x, Value<B, T> count, int width) {
  using U = UnsignedOf<T>;
  const auto n = bits(count);
  const auto in_range = n < n(static_cast<U>(width));
  auto low = bits(x);
  // A narrow signed integer is stored with its sign extended.
  if (width < static_cast<int>(8 * sizeof(T))) low = low & static_cast<U>((1u << width) - 1u);
  return resize<T>(select(in_range, low >> select(in_range, n, U{0}), U{0}));
}
/// Fills with bit width - 1 even where T is unsigned.
template <class B, class T>
Value<B, T> shift_right_arithmetic(Value<B, T> x, Value<B, T> count, int width) {
  using S = SignedOf<T>;
  const auto unused = static_cast<S>(static_cast<int>(8 * sizeof(T)) - width);
  const auto last = static_cast<UnsignedOf<T>>(width - 1);
  auto n = bits(count);
  n = select(n < n(static_cast<UnsignedOf<T>>(width)), n, last);
  auto wide = resize<S>(x);
  if (unused > 0) wide = (wide << unused) >> unused;
  return resize<T>(wide >> resize<S>(n));
}

/// Brings x back into the range of a `width`-bit integer: sign- or zero-extends its low bits.
template <class B, class T>
Value<B, T> wrap(Value<B, T> x, int width) {
  const auto unused = static_cast<T>(static_cast<int>(8 * sizeof(T)) - width);
  return unused == 0 ? x : (x << unused) >> unused;
}

}  // namespace hloom::functions
