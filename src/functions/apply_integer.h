// From an opcode to its body, for integers and pred.
#pragma once

#include <optional>

#include "functions/arithmetic.h"
#include "functions/element.h"
#include "functions/integers.h"
#include "hlo/opcode.h"

namespace hloom::functions {

using hlo::Opcode;

/// opcode(x) in `width` bits, or nothing if it is no function of one integer.
template <class B, class T>
std::optional<Value<B, T>> apply_integer(Opcode opcode, int width, Value<B, T> x) {
  switch (opcode) {
    case Opcode::Abs: return wrap(std::is_signed_v<T> ? select(x < T{0}, -x, x) : x, width);
    case Opcode::Negate: return wrap(-x, width);
    case Opcode::Sign: return sign(x);
    case Opcode::Not: return wrap(~x, width);
    case Opcode::Copy: return x;
    case Opcode::Popcnt: {
      auto low = bits(x);
      if (width < 8) low = low & static_cast<UnsignedOf<T>>((1u << width) - 1u);
      return wrap(resize<T>(count_ones(low)), width);
    }
    case Opcode::CountLeadingZeros: {
      // The number moves to the top; a one below it ends the count at the width.
      auto high = bits(x);
      if (width < 8) {
        const auto unused = static_cast<UnsignedOf<T>>(8 - width);
        high = (high << unused) | static_cast<UnsignedOf<T>>(1u << (unused - 1));
      }
      return wrap(resize<T>(count_leading_zeros(high)), width);
    }
    default: return {};
  }
}

template <class B, class T>
std::optional<Value<B, T>> apply_integer(Opcode opcode, int width, Value<B, T> x, Value<B, T> y) {
  switch (opcode) {
    case Opcode::Add: return wrap(x + y, width);
    case Opcode::Subtract: return wrap(x - y, width);
    case Opcode::Multiply: return wrap(x * y, width);
    case Opcode::Divide: return wrap(divide(x, y), width);
    case Opcode::Remainder: return wrap(remainder(x, y), width);
    case Opcode::Power: return wrap(power(x, y), width);
    case Opcode::Mulhi:
      if (width == static_cast<int>(8 * sizeof(T))) return multiply_high(x, y);
      // The whole product of two sub-byte numbers fits.
      return wrap((x * y) >> static_cast<T>(width), width);
    case Opcode::Maximum: return maximum(x, y);
    case Opcode::Minimum: return minimum(x, y);
    case Opcode::And: return x & y;
    case Opcode::Or: return x | y;
    case Opcode::Xor: return x ^ y;
    case Opcode::ShiftLeft: return wrap(shift_left(x, y, width), width);
    case Opcode::ShiftRightLogical: return wrap(shift_right_logical(x, y, width), width);
    case Opcode::ShiftRightArithmetic: return wrap(shift_right_arithmetic(x, y, width), width);
    default: return {};
  }
}

template <class B>
std::optional<Value<B, bool>> apply_pred(Opcode opcode, Value<B, bool> x) {
  switch (opcode) {
    case Opcode::Not: return !x;
    case Opcode::Copy: return x;
    default: return {};
  }
}
template <class B>
std::optional<Value<B, bool>> apply_pred(Opcode opcode, Value<B, bool> x, Value<B, bool> y) {
  switch (opcode) {
    case Opcode::Add:
    case Opcode::Maximum:
    case Opcode::Or: return x | y;
    case Opcode::Multiply:
    case Opcode::Minimum:
    case Opcode::And: return x & y;
    case Opcode::Xor: return x ^ y;
    default: return {};
  }
}

}  // namespace hloom::functions
