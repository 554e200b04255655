// Elements of any type, and from the type at run time to Value's type at compile time.
#pragma once

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "functions/value.h"
#include "hloom/shape.h"

namespace hloom::functions {

/// An element of a type that stands beside it. What its parts are is the builder's business: numbers as bits in an
/// uint64_t, or SSA values. They have these types of Value:
///   pred bool · s1 … s8 int8_t, sign-extended · u1 … u8 uint8_t · s16 … u64 as named · f32 float · f64 double
///   bf16 f16 uint16_t, their bits · f8… f4… uint8_t, their bits · c64 two floats · c128 two doubles
template <class B>
struct Element {
  typename B::Any real{};
  typename B::Any imag{};  ///< of complex types only
};

template <class T, class B>
Value<B, T> part(B& b, typename B::Any x) {
  return {&b, b.template from_any<T>(x)};
}
template <class B, class T>
Element<B> element(Value<B, T> x) {
  return {x.b->template to_any<T>(x.raw), {}};
}

/// Calls f.template operator()<T>() with the storage type of an integer type. Needs: is_integral(type).
template <class F>
auto with_integer(DType type, F&& f) {
  switch (type) {
    case DType::S1:
    case DType::S2:
    case DType::S4:
    case DType::S8: return f.template operator()<std::int8_t>();
    case DType::S16: return f.template operator()<std::int16_t>();
    case DType::S32: return f.template operator()<std::int32_t>();
    case DType::S64: return f.template operator()<std::int64_t>();
    case DType::U16: return f.template operator()<std::uint16_t>();
    case DType::U32: return f.template operator()<std::uint32_t>();
    case DType::U64: return f.template operator()<std::uint64_t>();
    default:
      HLOOM_CHECK(type == DType::U1 || type == DType::U2 || type == DType::U4 || type == DType::U8);
      return f.template operator()<std::uint8_t>();
  }
}

/// Whether values of the type are held as bits: floats of 4 to 16 bits.
inline bool is_narrow(DType type) { return is_floating(type) && type != DType::F32 && type != DType::F64; }

/// Calls f.template operator()<U>() with the type of a narrow float's bits. Needs: is_narrow(type).
template <class F>
auto with_narrow(DType type, F&& f) {
  HLOOM_CHECK(is_narrow(type));
  if (type == DType::BF16 || type == DType::F16) return f.template operator()<std::uint16_t>();
  return f.template operator()<std::uint8_t>();
}

}  // namespace hloom::functions
