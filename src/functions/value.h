// How the bodies in this folder are written: ordinary formulas over Value<B, T>, a value of element type T held
// by a builder B. With CppBuilder it is a number; with emit::IrBuilder an SSA value, a scalar or a vector.
//
//   template <class B>
//   Value<B, float> logistic(Value<B, float> x) {
//     const Value<B, float> e = exponential(-x);
//     return 1.0f / (1.0f + e);
//   }
//
// A builder has, for each T in {bool, int8_t … uint64_t, float, double}, a type B::Raw<T> and the operations that
// Value calls below. Each is one IEEE or two's-complement operation, so every builder gives the same bits (but
// for the payload and sign of a NaN). What C++ leaves open, builders define:
//   - integers wrap; a shift counts less than the width; division truncates, its divisor not 0, nor MIN / -1;
//   - comparisons with a NaN are false, but for !=.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hloom::functions {

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T>;

/// The unsigned integer as wide as T, and the signed one.
template <class T>
using UnsignedOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
template <class T>
using SignedOf = std::make_signed_t<UnsignedOf<T>>;

/// A value of type T. Copies are free; the builder must outlive it.
template <class B, class T>
struct Value {
  using Builder = B;
  using Type = T;
  using Raw = typename B::template Raw<T>;

  B* b;
  Raw raw;

  /// The same constant in every lane.
  Value operator()(T constant) const { return {b, b->template constant<T>(constant)}; }
};

template <class X>
inline constexpr bool is_value = false;
template <class B, class T>
inline constexpr bool is_value<Value<B, T>> = true;

// Operands may be Values or, beside a Value, plain numbers of its type.
template <class B, class T>
Value<B, T> lift(const Value<B, T>&, Value<B, T> x) {
  return x;
}
template <class B, class T>
Value<B, T> lift(const Value<B, T>& like, std::type_identity_t<T> constant) {
  return like(constant);
}

#define HLOOM_BINARY(op, method, Result)                                   \
  template <class B, class T>                                              \
  Value<B, Result> operator op(Value<B, T> x, Value<B, T> y) {             \
    return {x.b, x.b->template method<T>(x.raw, y.raw)};                   \
  }                                                                        \
  template <class B, class T>                                              \
  Value<B, Result> operator op(Value<B, T> x, std::type_identity_t<T> y) { \
    return x op x(y);                                                      \
  }                                                                        \
  template <class B, class T>                                              \
  Value<B, Result> operator op(std::type_identity_t<T> x, Value<B, T> y) { \
    return y(x) op y;                                                      \
  }
HLOOM_BINARY(+, add, T)
HLOOM_BINARY(-, sub, T)
HLOOM_BINARY(*, mul, T)
HLOOM_BINARY(/, div, T)
HLOOM_BINARY(%, rem, T)
HLOOM_BINARY(&, bit_and, T)
HLOOM_BINARY(|, bit_or, T)
HLOOM_BINARY(^, bit_xor, T)
HLOOM_BINARY(<<, shift_left, T)
HLOOM_BINARY(>>, shift_right, T)  // fills with the sign where T is signed
HLOOM_BINARY(==, equal, bool)
HLOOM_BINARY(!=, not_equal, bool)
HLOOM_BINARY(<, less, bool)
HLOOM_BINARY(<=, less_equal, bool)
#undef HLOOM_BINARY

template <class B, class T>
Value<B, bool> operator>(Value<B, T> x, Value<B, T> y) {
  return y < x;
}
template <class B, class T>
Value<B, bool> operator>(Value<B, T> x, std::type_identity_t<T> y) {
  return x(y) < x;
}
template <class B, class T>
Value<B, bool> operator>=(Value<B, T> x, Value<B, T> y) {
  return y <= x;
}
template <class B, class T>
Value<B, bool> operator>=(Value<B, T> x, std::type_identity_t<T> y) {
  return x(y) <= x;
}

/// Floats: flips the sign, of zeros and NaNs too. Integers: 0 - x.
template <class B, class T>
Value<B, T> operator-(Value<B, T> x) {
  if constexpr (is_real<T>)
    return {x.b, x.b->template negate<T>(x.raw)};
  else
    return x(0) - x;
}
template <class B>
Value<B, bool> operator!(Value<B, bool> x) {
  return x ^ true;
}
template <class B, class T>
  requires std::integral<T>
Value<B, T> operator~(Value<B, T> x) {
  return x ^ static_cast<T>(-1);
}

/// x·y + z with one rounding.
template <class B, class T>
Value<B, T> fma(Value<B, T> x, Value<B, T> y, Value<B, T> z) {
  return {x.b, x.b->template fma<T>(x.raw, y.raw, z.raw)};
}
template <class B, class T>
Value<B, T> fma(Value<B, T> x, std::type_identity_t<T> y, Value<B, T> z) {
  return fma(x, x(y), z);
}
template <class B, class T>
Value<B, T> fma(Value<B, T> x, Value<B, T> y, std::type_identity_t<T> z) {
  return fma(x, y, x(z));
}
template <class B, class T>
Value<B, T> fma(Value<B, T> x, std::type_identity_t<T> y, std::type_identity_t<T> z) {
  return fma(x, x(y), x(z));
}

/// `yes` where the condition holds, else `no`.
template <class B, class T>
Value<B, T> select(Value<B, bool> condition, Value<B, T> yes, Value<B, T> no) {
  return {yes.b, yes.b->template select<T>(condition.raw, yes.raw, no.raw)};
}
template <class B, class T>
Value<B, T> select(Value<B, bool> condition, std::type_identity_t<T> yes, Value<B, T> no) {
  return select(condition, no(yes), no);
}
template <class B, class T>
Value<B, T> select(Value<B, bool> condition, Value<B, T> yes, std::type_identity_t<T> no) {
  return select(condition, yes, yes(no));
}

/// A constant of type T for the builder of `like`.
template <class T, class B, class U>
Value<B, T> constant(const Value<B, U>& like, std::type_identity_t<T> value) {
  return {like.b, like.b->template constant<T>(value)};
}

// Floats: one operation each, exact but for sqrt, which is rounded once.
#define HLOOM_UNARY(name)                       \
  template <class B, class T>                   \
    requires is_real<T>                         \
  Value<B, T> name(Value<B, T> x) {             \
    return {x.b, x.b->template name<T>(x.raw)}; \
  }
HLOOM_UNARY(sqrt)
HLOOM_UNARY(abs)
HLOOM_UNARY(floor)
HLOOM_UNARY(ceil)
HLOOM_UNARY(trunc)
HLOOM_UNARY(round_even)
#undef HLOOM_UNARY

/// The same bits read as To. Needs: the same width.
template <class To, class B, class T>
Value<B, To> bits_as(Value<B, T> x) {
  static_assert(sizeof(To) == sizeof(T));
  return {x.b, x.b->template bits_as<To, T>(x.raw)};
}
template <class B, class T>
Value<B, UnsignedOf<T>> bits(Value<B, T> x) {
  return bits_as<UnsignedOf<T>>(x);
}

/// Integer or bool to an integer: keeps the low bits, or extends as T's sign says (bool by zeros).
template <class To, class B, class T>
Value<B, To> resize(Value<B, T> x) {
  static_assert(!is_real<To> && !is_real<T>);
  if constexpr (std::is_same_v<To, T>)
    return x;
  else
    return {x.b, x.b->template resize<To, T>(x.raw)};
}
/// Integer, bool or another float to a float: rounded to nearest even.
template <class To, class B, class T>
Value<B, To> to_real(Value<B, T> x) {
  static_assert(is_real<To>);
  if constexpr (std::is_same_v<To, T>)
    return x;
  else
    return {x.b, x.b->template to_real<To, T>(x.raw)};
}
/// Float to integer, truncated, saturated at the integer's bounds; NaN gives 0.
template <class To, class B, class T>
Value<B, To> to_integer(Value<B, T> x) {
  static_assert(std::integral<To> && is_real<T>);
  return {x.b, x.b->template to_integer<To, T>(x.raw)};
}

/// Number of one bits; of zeros above the highest one bit (the width for 0).
template <class B, class T>
  requires std::integral<T>
Value<B, T> count_ones(Value<B, T> x) {
  return {x.b, x.b->template count_ones<T>(x.raw)};
}
template <class B, class T>
  requires std::integral<T>
Value<B, T> count_leading_zeros(Value<B, T> x) {
  return {x.b, x.b->template count_leading_zeros<T>(x.raw)};
}

/// `common`, but `rare(x)` in the lanes where `condition` holds. A builder of vectors may compute rare() one lane at a
/// time, which it then calls with the Value of another builder; so rare() should be dear and its condition seldom true.
template <class B, class T, class X, class Rare>
Value<B, T> rarely(Value<B, bool> condition, Value<B, T> common, Value<B, X> x, Rare rare) {
  return {common.b, common.b->template rarely<T, X>(condition.raw, common.raw, x.raw, rare)};
}

/// table[index]. Needs: an index within the table; a call from within rare().
template <class B, class T, std::size_t n>
Value<B, T> entry(const std::array<T, n>& table, Value<B, std::uint64_t> index) {
  return {index.b, index.b->template entry<T>(table, index.raw)};
}

/// Repeats state = step(state) in the lanes where going_on(state) holds, until it holds in none.
template <class B, class T, class GoingOn, class Step>
Value<B, T> repeat_while(Value<B, T> state, GoingOn going_on, Step step) {
  B* b = state.b;
  return {b, b->template repeat_while<T>(
                 state.raw, [&](typename B::template Raw<T> s) { return going_on(Value<B, T>{b, s}).raw; },
                 [&](typename B::template Raw<T> s) { return step(Value<B, T>{b, s}).raw; })};
}

// What follows from the operations above.

template <class B, class T>
Value<B, bool> is_nan(Value<B, T> x) {
  return x != x;
}
/// The bits of the sign alone: 0 or the top bit.
template <class B, class T>
Value<B, UnsignedOf<T>> sign_bit(Value<B, T> x) {
  return bits(x) & static_cast<UnsignedOf<T>>(UnsignedOf<T>{1} << (8 * sizeof(T) - 1));
}
/// Magnitude of x, sign of y. Needs: x without a sign.
template <class B, class T>
Value<B, T> with_sign(Value<B, T> x, Value<B, T> y) {
  return bits_as<T>(bits(x) | sign_bit(y));
}
/// The smaller or larger; the second operand where either is a NaN. One instruction on x86.
template <class B, class T>
Value<B, T> smaller(Value<B, T> x, Value<B, T> y) {
  return select(x < y, x, y);
}
template <class B, class T>
Value<B, T> larger(Value<B, T> x, Value<B, T> y) {
  return select(x > y, x, y);
}
template <class B, class T>
Value<B, T> smaller(std::type_identity_t<T> x, Value<B, T> y) {
  return smaller(y(x), y);
}
template <class B, class T>
Value<B, T> larger(std::type_identity_t<T> x, Value<B, T> y) {
  return larger(y(x), y);
}

/// c[0] + x·(c[1] + x·(…)).
template <class B, class T, std::size_t n>
Value<B, T> polynomial(Value<B, T> x, const T (&c)[n]) {
  Value<B, T> sum = x(c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) sum = fma(sum, x, c[i]);
  return sum;
}

}  // namespace hloom::functions
