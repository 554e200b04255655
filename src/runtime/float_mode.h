// The processor's floating point mode: rounding, traps, denormals.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace hloom::runtime {

#if defined(__SSE2__)
/// While it lives, this thread rounds to nearest, keeps denormals and traps nothing; then all is as before.
class DefaultFloatMode {
 public:
  DefaultFloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~DefaultFloatMode() { _mm_setcsr(before_); }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, no flags
  unsigned before_;
};
#elif defined(__aarch64__)
/// While it lives, this thread rounds to nearest, keeps denormals and traps nothing; then all is as before.
class DefaultFloatMode {
 public:
  DefaultFloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~DefaultFloatMode() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  std::uint64_t before_;
};
#else
#error "the floating point mode of this processor is not known"
#endif

}  // namespace hloom::runtime
