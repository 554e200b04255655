// Conversions between element types (hlo-ops 5). Each goes through one of four types that hold every value of their
// kind: std::int64_t, std::uint64_t, double, std::complex<double>; so that what is rounded is rounded once.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "interp/kernel.h"

namespace hloom::interp {
namespace {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// The double nearest to x toward zero, its last bit set if it is not x itself (round to odd): rounding it again to a
// type of at most 51 digits gives what rounding x would.
double odd_double(std::uint64_t x) {
  const int extra = 64 - std::countl_zero(x) - 53;
  if (extra <= 0) return static_cast<double>(x);
  const std::uint64_t dropped = x & ((std::uint64_t{1} << extra) - 1);
  const std::uint64_t kept = (x >> extra) | (dropped != 0 ? 1 : 0);
  return std::ldexp(static_cast<double>(kept), extra);
}

template <typename Int>
double odd_double_of(Int x) {
  if constexpr (std::is_signed_v<Int>)
    if (x < 0) return -odd_double(-static_cast<std::uint64_t>(x));
  return odd_double(static_cast<std::uint64_t>(x));
}

// Truncated, held within the type of that width; NaN gives 0.
template <typename Int>
Int saturated(double x, int width) {
  if (std::isnan(x)) return 0;
  constexpr bool kSigned = std::is_signed_v<Int>;
  const Int most = static_cast<Int>((~std::uint64_t{0} >> (64 - width)) >> (kSigned ? 1 : 0));
  const Int least = kSigned ? static_cast<Int>(-most - 1) : Int{0};
  if (x >= std::ldexp(1.0, kSigned ? width - 1 : width)) return most;
  if (x <= static_cast<double>(least)) return least;
  return static_cast<Int>(x);
}

// x is std::int64_t, std::uint64_t, double or std::complex<double>.

template <typename X>
void store(const Boolean& to, std::byte* out, std::int64_t i, X x) {
  to.store(out, i, x != X(0));
}
template <typename T, typename X>
void store(const Integer<T>& to, std::byte* out, std::int64_t i, X x) {
  using Exact = typename Integer<T>::Exact;
  if constexpr (kIsComplex<X>)
    store(to, out, i, x.real());
  else if constexpr (std::is_floating_point_v<X>)
    to.store(out, i, saturated<Exact>(x, to.width));
  else
    to.store(out, i, static_cast<Exact>(x));
}
template <typename X>
void store(const Narrow& to, std::byte* out, std::int64_t i, X x) {
  if constexpr (kIsComplex<X>)
    to.store(out, i, x.real());
  else if constexpr (std::is_integral_v<X>)
    to.store(out, i, odd_double_of(x));
  else
    to.store(out, i, x);
}
template <typename T, typename X>
void store(const Native<T>& to, std::byte* out, std::int64_t i, X x) {
  if constexpr (kIsComplex<T> && kIsComplex<X>)
    to.store(out, i, T(static_cast<typename T::value_type>(x.real()), static_cast<typename T::value_type>(x.imag())));
  else if constexpr (kIsComplex<T>)
    to.store(out, i, T(static_cast<typename T::value_type>(x)));
  else if constexpr (kIsComplex<X>)
    to.store(out, i, static_cast<T>(x.real()));
  else
    to.store(out, i, static_cast<T>(x));
}

template <typename Exact>
auto canonical(Exact x) {
  if constexpr (std::is_same_v<Exact, bool>)
    return static_cast<std::uint64_t>(x);
  else if constexpr (kIsComplex<Exact>)
    return std::complex<double>(x);
  else if constexpr (std::is_floating_point_v<Exact>)
    return static_cast<double>(x);
  else
    return x;
}

template <typename X>
void store_piece(DType to, std::byte* out, std::int64_t begin, const X* piece, std::int64_t n) {
  with_any(to, [&](const auto& target) {
    for (std::int64_t i = 0; i < n; ++i) store(target, out, begin + i, piece[i]);
  });
}

}  // namespace

void convert(std::byte* out, DType to, const std::byte* in, DType from, std::int64_t n) {
  // A piece at a time is read into the canonical type and stored from it, so that there is a loop for each type to
  // read and four for each to store, not one for each pair.
  constexpr std::int64_t kPiece = 256;
  with_any(from, [&](const auto& source) {
    decltype(canonical(source.load(in, 0))) piece[kPiece];
    for (std::int64_t begin = 0; begin < n; begin += kPiece) {
      const std::int64_t count = std::min(n - begin, kPiece);
      for (std::int64_t i = 0; i < count; ++i) piece[i] = canonical(source.load(in, begin + i));
      store_piece(to, out, begin, piece, count);
    }
  });
}

Kernel::Function convert_operation(DType from, DType to) {
  if (from == to) return copy_operation(from);
  return [](const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
    convert(out, k.result, in[0], k.type, n);
  };
}

}  // namespace hloom::interp
