// Elements of every type as C++ numbers: how they are read, in which type they are computed, how they are stored.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "hlo/literal.h"
#include "hlo/narrow_float.h"
#include "hloom/shape.h"

namespace hloom::interp {

/// The type in which functions and sums are computed before they are rounded once.
template <typename T>
struct WiderOf;
template <>
struct WiderOf<float> {
  using type = double;
};
template <>
struct WiderOf<double> {
  using type = long double;
};
template <typename T>
struct WiderOf<std::complex<T>> {
  using type = std::complex<typename WiderOf<T>::type>;
};

// The accessors below read and store element i of an array of their type. Exact is the type in which operations that
// IEEE 754 defines are done: storing their result rounds once, or as if once, for double has more than twice the digits
// of f32 and narrower types. Wide is the type for functions and sums.

/// f32, f64, c64, c128.
template <typename T>
struct Native {
  using Exact = T;
  using Wide = typename WiderOf<T>::type;
  explicit Native(DType) {}
  Exact load(const std::byte* from, std::int64_t i) const { return reinterpret_cast<const T*>(from)[i]; }
  void store(std::byte* to, std::int64_t i, Exact x) const { reinterpret_cast<T*>(to)[i] = x; }
};

/// The values of all patterns of a float type of at most 16 bits. Lives forever.
const double* decode_table(DType type);

/// bf16, f16, f8 and f4 types.
struct Narrow {
  using Exact = double;
  using Wide = double;
  explicit Narrow(DType type)
      : format(hlo::float_format(type)), values(decode_table(type)), two_bytes(byte_width(type) == 2) {}
  Exact load(const std::byte* from, std::int64_t i) const {
    return values[two_bytes ? reinterpret_cast<const std::uint16_t*>(from)[i] : std::to_integer<std::uint8_t>(from[i])];
  }
  void store(std::byte* to, std::int64_t i, Exact x) const {
    const std::uint64_t bits = hlo::encode_float(format, x);
    if (two_bytes)
      reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(bits);
    else
      to[i] = static_cast<std::byte>(bits);
  }
  const hlo::FloatFormat& format;
  const double* values;
  bool two_bytes;
};

/// Integers, in storage T; narrower ones wrap at their width. Computed in 64 bits.
template <typename T>
struct Integer {
  using Exact = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  explicit Integer(DType type) : width(bit_width(type)) {}
  Exact load(const std::byte* from, std::int64_t i) const { return reinterpret_cast<const T*>(from)[i]; }
  void store(std::byte* to, std::int64_t i, Exact x) const { reinterpret_cast<T*>(to)[i] = static_cast<T>(wrap(x)); }
  /// The low `width` bits, extended.
  Exact wrap(Exact x) const {
    const int unused = 64 - width;
    return static_cast<Exact>(static_cast<std::uint64_t>(x) << unused) >> unused;
  }
  int width;
};

/// pred.
struct Boolean {
  using Exact = bool;
  explicit Boolean(DType) {}
  Exact load(const std::byte* from, std::int64_t i) const { return from[i] != std::byte{0}; }
  void store(std::byte* to, std::int64_t i, Exact x) const { to[i] = std::byte{x}; }
};

/// f(accessor) for a float type. All calls give one type.
template <typename F>
auto with_float(DType type, const F& f) {
  if (type == DType::F32) return f(Native<float>(type));
  if (type == DType::F64) return f(Native<double>(type));
  return f(Narrow(type));
}
template <typename F>
auto with_complex(DType type, const F& f) {
  if (type == DType::C64) return f(Native<std::complex<float>>(type));
  return f(Native<std::complex<double>>(type));
}
template <typename F>
auto with_integer(DType type, const F& f) {
  const std::int64_t bytes = byte_width(type);
  if (is_signed(type)) {
    if (bytes == 1) return f(Integer<std::int8_t>(type));
    if (bytes == 2) return f(Integer<std::int16_t>(type));
    if (bytes == 4) return f(Integer<std::int32_t>(type));
    return f(Integer<std::int64_t>(type));
  }
  if (bytes == 1) return f(Integer<std::uint8_t>(type));
  if (bytes == 2) return f(Integer<std::uint16_t>(type));
  if (bytes == 4) return f(Integer<std::uint32_t>(type));
  return f(Integer<std::uint64_t>(type));
}
/// f(accessor) for any type but pred.
template <typename F>
auto with_number(DType type, const F& f) {
  if (is_floating(type)) return with_float(type, f);
  if (is_complex(type)) return with_complex(type, f);
  return with_integer(type, f);
}
template <typename F>
auto with_any(DType type, const F& f) {
  if (type == DType::Pred) return f(Boolean(type));
  return with_number(type, f);
}

// Whole arrays in a wide type W: double (floats up to f32), long double (f64), complex of these, std::uint64_t
// (integers, sign-extended).

/// All elements as W. Needs: a type whose values W holds.
template <typename W>
std::vector<W> widen(const hlo::Literal&);
/// An array of the shape with these elements, rounded or wrapped once.
template <typename W>
hlo::Literal rounded(const Shape&, const std::vector<W>&);

/// f(W()) with the type W in which sums of `type` are computed. pred counts as an integer.
template <typename F>
auto with_wide(DType type, const F& f) {
  if (type == DType::F64) return f(0.0L);
  if (is_floating(type)) return f(0.0);
  if (type == DType::C64) return f(std::complex<double>());
  if (type == DType::C128) return f(std::complex<long double>());
  return f(std::uint64_t{0});
}

}  // namespace hloom::interp
