#include "interp/element.h"

#include <array>
#include <memory>
#include <mutex>

#include "base/check.h"

namespace hloom::interp {
namespace {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// Between an accessor's type and a wide one. Values fit, but for the rounding of the last step.
template <typename To, typename From>
To cast(From x) {
  if constexpr (kIsComplex<To> && kIsComplex<From>)
    return {static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag())};
  else if constexpr (kIsComplex<To>)
    return To(static_cast<typename To::value_type>(x));
  else if constexpr (kIsComplex<From>)
    return static_cast<To>(x.real());
  else
    return static_cast<To>(x);
}

}  // namespace

const double* decode_table(DType type) {
  static std::mutex mutex;
  static std::array<std::unique_ptr<double[]>, 64> tables;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& table = tables[static_cast<std::size_t>(type)];
  if (!table) {
    const hlo::FloatFormat& format = hlo::float_format(type);
    HLOOM_CHECK(format.width() <= 16);
    const std::size_t count = std::size_t{1} << (8 * byte_width(type));
    table = std::make_unique<double[]>(count);
    for (std::size_t bits = 0; bits < count; ++bits) table[bits] = hlo::decode_float(format, bits);
  }
  return table.get();
}

template <typename W>
std::vector<W> widen(const hlo::Literal& literal) {
  const std::int64_t n = literal.num_elements();
  std::vector<W> out(static_cast<std::size_t>(n));
  const std::byte* from = literal.bytes().data();
  with_any(literal.dtype(), [&](const auto& access) {
    for (std::int64_t i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = cast<W>(access.load(from, i));
  });
  return out;
}

template <typename W>
hlo::Literal rounded(const Shape& shape, const std::vector<W>& values) {
  hlo::Literal result(shape);
  std::byte* to = result.mutable_bytes().data();
  const auto n = static_cast<std::int64_t>(values.size());
  HLOOM_CHECK(n == result.num_elements());
  with_any(shape.dtype(), [&](const auto& access) {
    using Exact = typename std::decay_t<decltype(access)>::Exact;
    for (std::int64_t i = 0; i < n; ++i) access.store(to, i, cast<Exact>(values[static_cast<std::size_t>(i)]));
  });
  return result;
}

#define HLOOM_WIDE(W)                                    \
  template std::vector<W> widen<W>(const hlo::Literal&); \
  template hlo::Literal rounded<W>(const Shape&, const std::vector<W>&);
HLOOM_WIDE(double)
HLOOM_WIDE(long double)
HLOOM_WIDE(std::complex<double>)
HLOOM_WIDE(std::complex<long double>)
HLOOM_WIDE(std::uint64_t)
#undef HLOOM_WIDE

}  // namespace hloom::interp
