// Operations on floats. What IEEE 754 defines is done in the element's own precision; functions in the next wider one
// (double for f32 and narrower, long double for f64), whose library is good to one unit of its last place, and rounded
// once: within 0.501 units of the element's last place.

#include <cmath>
#include <cstring>

#include "interp/kernel.h"

namespace hloom::interp {
namespace {

using hlo::Opcode;

template <typename Op>
Kernel::Function exact(DType type, Op) {
  return with_float(type,
                    [](const auto& a) -> Kernel::Function { return apply_exact1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function wide(DType type, Op) {
  return with_float(type, [](const auto& a) -> Kernel::Function { return apply_wide1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function exact_pair(DType type, Op) {
  return with_float(type,
                    [](const auto& a) -> Kernel::Function { return apply_exact2<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function wide_pair(DType type, Op) {
  return with_float(type, [](const auto& a) -> Kernel::Function { return apply_wide2<std::decay_t<decltype(a)>, Op>; });
}

template <typename T>
T sign(T x) {
  if (std::isnan(x) || x == 0) return x;
  return x < 0 ? T{-1} : T{1};
}

// IEEE 754-2019: a NaN wins, and +0 is above -0.
template <typename T>
T maximum(T a, T b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename T>
T minimum(T a, T b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <typename T>
T power(T a, T b) {
  if (b == 0 || a == 1) return 1;
  return std::pow(a, b);
}

template <typename T>
T logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

template <typename Access>
void is_finite(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::byte{std::isfinite(a.load(in[0], i))};
}

void zero(const Kernel& k, std::byte* out, const std::byte* const*, std::int64_t n) {
  std::memset(out, 0, static_cast<std::size_t>(n * byte_width(k.result)));
}

template <typename Access>
void clamp(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto low = a.load(in[0], i), x = a.load(in[1], i), high = a.load(in[2], i);
    a.store(out, i, std::isnan(low) ? low : minimum(maximum(x, low), high));
  }
}

}  // namespace

Kernel::Function real_function(Opcode opcode, DType type) {
  switch (opcode) {
    case Opcode::Abs: return exact(type, [](auto x) { return std::fabs(x); });
    case Opcode::Negate: return exact(type, [](auto x) { return -x; });
    case Opcode::Sign: return exact(type, [](auto x) { return sign(x); });
    case Opcode::Floor: return exact(type, [](auto x) { return std::floor(x); });
    case Opcode::Ceil: return exact(type, [](auto x) { return std::ceil(x); });
    case Opcode::RoundNearestAfz: return exact(type, [](auto x) { return std::round(x); });
    case Opcode::RoundNearestEven: return exact(type, [](auto x) { return std::nearbyint(x); });
    case Opcode::Sqrt: return exact(type, [](auto x) { return std::sqrt(x); });
    case Opcode::Real: return copy_operation(type);
    case Opcode::Imag: return zero;
    case Opcode::IsFinite:
      return with_float(type, [](const auto& a) -> Kernel::Function { return is_finite<std::decay_t<decltype(a)>>; });
    case Opcode::Rsqrt: return wide(type, [](auto x) { return 1 / std::sqrt(x); });
    case Opcode::Cbrt: return wide(type, [](auto x) { return std::cbrt(x); });
    case Opcode::Exponential: return wide(type, [](auto x) { return std::exp(x); });
    case Opcode::ExponentialMinusOne: return wide(type, [](auto x) { return std::expm1(x); });
    case Opcode::Log: return wide(type, [](auto x) { return std::log(x); });
    case Opcode::LogPlusOne: return wide(type, [](auto x) { return std::log1p(x); });
    case Opcode::Logistic: return wide(type, [](auto x) { return logistic(x); });
    case Opcode::Sine: return wide(type, [](auto x) { return std::sin(x); });
    case Opcode::Cosine: return wide(type, [](auto x) { return std::cos(x); });
    case Opcode::Tan: return wide(type, [](auto x) { return std::tan(x); });
    case Opcode::Tanh: return wide(type, [](auto x) { return std::tanh(x); });
    case Opcode::Sinh: return wide(type, [](auto x) { return std::sinh(x); });
    case Opcode::Cosh: return wide(type, [](auto x) { return std::cosh(x); });
    case Opcode::Asin: return wide(type, [](auto x) { return std::asin(x); });
    case Opcode::Acos: return wide(type, [](auto x) { return std::acos(x); });
    case Opcode::Atan: return wide(type, [](auto x) { return std::atan(x); });
    case Opcode::Asinh: return wide(type, [](auto x) { return std::asinh(x); });
    case Opcode::Acosh: return wide(type, [](auto x) { return std::acosh(x); });
    case Opcode::Atanh: return wide(type, [](auto x) { return std::atanh(x); });
    case Opcode::Erf: return wide(type, [](auto x) { return std::erf(x); });
    default: return nullptr;
  }
}

Kernel::Function real_operation(Opcode opcode, DType type) {
  switch (opcode) {
    case Opcode::Add: return exact_pair(type, [](auto a, auto b) { return a + b; });
    case Opcode::Subtract: return exact_pair(type, [](auto a, auto b) { return a - b; });
    case Opcode::Multiply: return exact_pair(type, [](auto a, auto b) { return a * b; });
    case Opcode::Divide: return exact_pair(type, [](auto a, auto b) { return a / b; });
    case Opcode::Remainder: return exact_pair(type, [](auto a, auto b) { return std::fmod(a, b); });
    case Opcode::Maximum: return exact_pair(type, [](auto a, auto b) { return maximum(a, b); });
    case Opcode::Minimum: return exact_pair(type, [](auto a, auto b) { return minimum(a, b); });
    case Opcode::Power: return wide_pair(type, [](auto a, auto b) { return power(a, b); });
    case Opcode::Atan2: return wide_pair(type, [](auto y, auto x) { return std::atan2(y, x); });
    case Opcode::Clamp:
      return with_float(type, [](const auto& a) -> Kernel::Function { return clamp<std::decay_t<decltype(a)>>; });
    default: return nullptr;
  }
}

}  // namespace hloom::interp
