// The floating point operations that a processor does at most.
#include <algorithm>
#include <cmath>

#include "limits.h"

namespace hloom::bench {
namespace {

constexpr int kChains = 12;  // enough to cover the latency of two units
constexpr int kSteps = 100'000;

// x·y + z in all chains, kSteps times. Gives what keeps the compiler from leaving it out.
template <class V>
[[gnu::always_inline]] inline float chains() {
  V sum[kChains];
  V factor, term;
  for (int i = 0; i < static_cast<int>(sizeof(V) / 4); ++i) factor[i] = 0.999F, term[i] = 1e-3F;
#pragma GCC unroll 16
  for (V& v : sum) v = term;
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (V& v : sum) v = v * factor + term;
  }
  V all = sum[0];
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) all += sum[i];
  return all[0];
}

using V16 [[gnu::vector_size(16)]] = float;
using V32 [[gnu::vector_size(32)]] = float;
using V64 [[gnu::vector_size(64)]] = float;

float with_sixteen_bytes() { return chains<V16>(); }
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float with_avx2() { return chains<V32>(); }
[[gnu::target("avx512f,fma,prefer-vector-width=512")]] float with_avx512() { return chains<V64>(); }
#endif

struct Way {
  float (*run)();
  double lanes;
};
Way widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return {with_avx512, 16};
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return {with_avx2, 8};
#endif
  return {with_sixteen_bytes, 4};
}

}  // namespace

double peak_flops() {
  static const double peak = [] {
    const Way way = widest();
    double best = INFINITY;
    volatile float result = 0;
    for (int i = 0; i < 20; ++i) {
      const double start = thread_seconds();
      result = way.run();
      best = std::min(best, thread_seconds() - start);
    }
    static_cast<void>(result);
    return 2.0 * kChains * kSteps * way.lanes / best;
  }();
  return peak;
}

}  // namespace hloom::bench
