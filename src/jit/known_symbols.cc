#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/run_status.h"
#include "emit/symbol_name.h"
#include "jit/code.h"

// libgcc's helpers. Only their addresses matter here, so their types are left out.
extern "C" {
void __divti3();
void __modti3();
void __udivti3();
void __umodti3();
void __multi3();
void __extendhfsf2();
void __truncsfhf2();
void __truncdfhf2();
}

namespace hloom::jit {
namespace {

using Half = _Float16;  // returned in the low 16 bits of a vector register, as LLVM returns a bfloat

Half half_of_bits(std::uint16_t bits) {
  Half result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// Rounds to the nearest bfloat16, ties to even; a NaN stays one. GCC 12's libgcc lacks this.
std::uint16_t bfloat_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

Half truncate_float_to_bfloat(float value) { return half_of_bits(bfloat_bits(value)); }

// Rounding twice is wrong only where the first rounding makes a tie; rounding to odd there keeps the direction.
Half truncate_double_to_bfloat(double value) {
  float near = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &near, sizeof(bits));
  if (static_cast<double>(near) != value && (bits & 1) == 0 && std::isfinite(near))
    near = std::nextafterf(near, static_cast<double>(near) < value ? INFINITY : -INFINITY);
  return half_of_bits(bfloat_bits(near));
}

template <typename Function>
Symbol symbol(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

#define HLOOM_LIBM(name) symbol<double(double)>(#name, ::name), symbol<float(float)>(#name "f", ::name##f)

}  // namespace

std::span<const Symbol> known_symbols() {
  static const Symbol kSymbols[] = {
      {std::string(emit::kReportOutside), reinterpret_cast<void*>(&base::report_outside)},
      symbol<void*(void*, const void*, std::size_t)>("memcpy", std::memcpy),
      symbol<void*(void*, const void*, std::size_t)>("memmove", std::memmove),
      symbol<void*(void*, int, std::size_t)>("memset", std::memset),
      symbol<int(const void*, const void*, std::size_t)>("memcmp", std::memcmp),
      symbol<int(const void*, const void*, std::size_t)>("bcmp", std::memcmp),
      HLOOM_LIBM(floor), HLOOM_LIBM(ceil), HLOOM_LIBM(trunc), HLOOM_LIBM(rint), HLOOM_LIBM(nearbyint),
      HLOOM_LIBM(round), HLOOM_LIBM(roundeven), HLOOM_LIBM(sqrt),
      symbol<double(double, double)>("fmod", ::fmod), symbol<float(float, float)>("fmodf", ::fmodf),
      symbol<double(double, double, double)>("fma", ::fma),
      symbol<float(float, float, float)>("fmaf", ::fmaf),
      symbol<double(double, int)>("ldexp", ::ldexp), symbol<float(float, int)>("ldexpf", ::ldexpf),
      symbol("__divti3", __divti3), symbol("__modti3", __modti3), symbol("__udivti3", __udivti3),
      symbol("__umodti3", __umodti3), symbol("__multi3", __multi3),
      symbol("__extendhfsf2", __extendhfsf2), symbol("__truncsfhf2", __truncsfhf2),
      symbol("__truncdfhf2", __truncdfhf2),
      symbol("__truncsfbf2", truncate_float_to_bfloat), symbol("__truncdfbf2", truncate_double_to_bfloat),
  };
  return kSymbols;
}

}  // namespace hloom::jit
