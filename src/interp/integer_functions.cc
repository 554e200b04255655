// Operations on integers and pred. Integers are computed in 64 bits, without signs where they could overflow, and wrap
// at their width when stored.

#include <bit>
#include <type_traits>

#include "interp/kernel.h"

namespace hloom::interp {
namespace {

using hlo::Opcode;
using Unsigned = std::uint64_t;

__extension__ using Wide = __int128;
__extension__ using WideUnsigned = unsigned __int128;

Unsigned mask(int width) { return ~Unsigned{0} >> (64 - width); }

template <typename T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(-1);  // all ones
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(-static_cast<Unsigned>(a));  // the least one stays as it wraps
  return a / b;
}

template <typename T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return a % b;
}

template <typename T>
T power(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b < 0) return a == 1 ? 1 : 0;
  Unsigned result = 1, square = static_cast<Unsigned>(a);
  for (auto bits = static_cast<Unsigned>(b); bits != 0; bits >>= 1, square *= square)
    if ((bits & 1) != 0) result *= square;
  return static_cast<T>(result);
}

template <typename T>
T multiply_high(T a, T b, int width) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>((static_cast<Wide>(a) * b) >> width);
  else
    return static_cast<T>((static_cast<WideUnsigned>(a) * b) >> width);
}

template <typename T>
T shift_left(T a, T b, int width) {
  const Unsigned count = static_cast<Unsigned>(b) & mask(width);
  return count >= static_cast<Unsigned>(width) ? T{0} : static_cast<T>(static_cast<Unsigned>(a) << count);
}
template <typename T>
T shift_right_logical(T a, T b, int width) {
  const Unsigned count = static_cast<Unsigned>(b) & mask(width);
  return count >= static_cast<Unsigned>(width) ? T{0}
                                               : static_cast<T>((static_cast<Unsigned>(a) & mask(width)) >> count);
}
// Copies of the top bit come in, whether the type is signed or not.
template <typename T>
T shift_right_arithmetic(T a, T b, int width) {
  const Unsigned count = static_cast<Unsigned>(b) & mask(width);
  const auto extended = static_cast<std::int64_t>(static_cast<Unsigned>(a) << (64 - width)) >> (64 - width);
  return static_cast<T>(extended >> (count >= static_cast<Unsigned>(width) ? 63 : count));
}

template <typename T>
T absolute(T a) {
  if constexpr (std::is_signed_v<T>) return a < 0 ? static_cast<T>(-static_cast<Unsigned>(a)) : a;
  return a;
}
template <typename T>
T sign(T a) {
  if constexpr (std::is_signed_v<T>)
    if (a < 0) return -1;
  return a == 0 ? 0 : 1;
}

// Op takes the width too.
template <typename Access, typename Op>
void apply_sized1(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) a.store(out, i, Op()(a.load(in[0], i), a.width));
}
template <typename Access, typename Op>
void apply_sized2(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) a.store(out, i, Op()(a.load(in[0], i), a.load(in[1], i), a.width));
}

template <typename Op>
Kernel::Function unary(DType type, Op) {
  return with_integer(type,
                      [](const auto& a) -> Kernel::Function { return apply_exact1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function binary(DType type, Op) {
  return with_integer(type,
                      [](const auto& a) -> Kernel::Function { return apply_exact2<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function sized_unary(DType type, Op) {
  return with_integer(type,
                      [](const auto& a) -> Kernel::Function { return apply_sized1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function sized_binary(DType type, Op) {
  return with_integer(type,
                      [](const auto& a) -> Kernel::Function { return apply_sized2<std::decay_t<decltype(a)>, Op>; });
}

template <typename Access>
void clamp(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto low = a.load(in[0], i), x = a.load(in[1], i), high = a.load(in[2], i);
    const auto raised = x < low ? low : x;
    a.store(out, i, raised > high ? high : raised);
  }
}

template <typename Op>
Kernel::Function pred_unary(Op) {
  return apply_exact1<Boolean, Op>;
}
template <typename Op>
Kernel::Function pred_binary(Op) {
  return apply_exact2<Boolean, Op>;
}

}  // namespace

Kernel::Function integer_operation(Opcode opcode, DType type) {
  switch (opcode) {
    case Opcode::Abs: return unary(type, [](auto a) { return absolute(a); });
    case Opcode::Negate: return unary(type, [](auto a) { return -static_cast<Unsigned>(a); });
    case Opcode::Sign: return unary(type, [](auto a) { return sign(a); });
    case Opcode::Not: return unary(type, [](auto a) { return ~a; });
    case Opcode::Popcnt:
      return sized_unary(
          type, [](auto a, int width) -> decltype(a) { return std::popcount(static_cast<Unsigned>(a) & mask(width)); });
    case Opcode::CountLeadingZeros:
      return sized_unary(type, [](auto a, int width) -> decltype(a) {
        return std::countl_zero(static_cast<Unsigned>(a) & mask(width)) - (64 - width);
      });
    case Opcode::Add:
      return binary(type, [](auto a, auto b) { return static_cast<Unsigned>(a) + static_cast<Unsigned>(b); });
    case Opcode::Subtract:
      return binary(type, [](auto a, auto b) { return static_cast<Unsigned>(a) - static_cast<Unsigned>(b); });
    case Opcode::Multiply:
      return binary(type, [](auto a, auto b) { return static_cast<Unsigned>(a) * static_cast<Unsigned>(b); });
    case Opcode::Divide: return binary(type, [](auto a, auto b) { return divide(a, b); });
    case Opcode::Remainder: return binary(type, [](auto a, auto b) { return remainder(a, b); });
    case Opcode::Power: return binary(type, [](auto a, auto b) { return power(a, b); });
    case Opcode::Maximum: return binary(type, [](auto a, auto b) { return a < b ? b : a; });
    case Opcode::Minimum: return binary(type, [](auto a, auto b) { return b < a ? b : a; });
    case Opcode::And: return binary(type, [](auto a, auto b) { return a & b; });
    case Opcode::Or: return binary(type, [](auto a, auto b) { return a | b; });
    case Opcode::Xor: return binary(type, [](auto a, auto b) { return a ^ b; });
    case Opcode::Mulhi: return sized_binary(type, [](auto a, auto b, int width) { return multiply_high(a, b, width); });
    case Opcode::ShiftLeft:
      return sized_binary(type, [](auto a, auto b, int width) { return shift_left(a, b, width); });
    case Opcode::ShiftRightLogical:
      return sized_binary(type, [](auto a, auto b, int width) { return shift_right_logical(a, b, width); });
    case Opcode::ShiftRightArithmetic:
      return sized_binary(type, [](auto a, auto b, int width) { return shift_right_arithmetic(a, b, width); });
    case Opcode::Clamp:
      return with_integer(type, [](const auto& a) -> Kernel::Function { return clamp<std::decay_t<decltype(a)>>; });
    default: return nullptr;
  }
}

Kernel::Function pred_operation(Opcode opcode) {
  switch (opcode) {
    case Opcode::Not: return pred_unary([](bool a) { return !a; });
    case Opcode::Add:
    case Opcode::Or:
    case Opcode::Maximum: return pred_binary([](bool a, bool b) { return a || b; });
    case Opcode::Multiply:
    case Opcode::And:
    case Opcode::Minimum: return pred_binary([](bool a, bool b) { return a && b; });
    case Opcode::Xor: return pred_binary([](bool a, bool b) { return a != b; });
    case Opcode::Clamp: return clamp<Boolean>;
    default: return nullptr;
  }
}

}  // namespace hloom::interp
