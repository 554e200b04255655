#include <algorithm>

#include "library/fft_pass.h"

namespace hloom::library {

void run_fft(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  static const base::KernelFunction function = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return run_fft_avx512;
    if (__builtin_cpu_supports("avx2")) return run_fft_avx2;
#endif
    return run_fft_plain;
  }();
  function(buffers, begin, end, scratch);
}

std::int64_t fft_scratch_bytes(const FftPass& p) { return 2 * 2 * 64 * (std::max(p.core, p.points) + 1); }

}  // namespace hloom::library
