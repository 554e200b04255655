#include "limits.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "hloom/buffer.h"

namespace hloom::bench {
namespace {

template <class Work>
double best_seconds(std::int64_t times, const Work& work) {
  double best = INFINITY;
  for (int run = 0; run < 8; ++run) {
    const double start = thread_seconds();
    for (std::int64_t k = 0; k < times; ++k) {
      work();
      asm volatile("" : : : "memory");
    }
    best = std::min(best, (thread_seconds() - start) / static_cast<double>(times));
  }
  return best;
}

Buffer filled(std::int64_t bytes) {
  Buffer buffer = *Buffer::allocate(bytes);
  std::ranges::fill(buffer.mutable_bytes(), std::byte{1});
  return buffer;
}

constexpr std::int64_t kChains = 16;  // vectors that are read in one step

// The sum of all, in `Streams` parts that lie one behind the other. Needs: parts of whole steps.
template <class V, std::int64_t Streams>
[[gnu::always_inline]] inline float sum(const float* all, std::int64_t count) {
  constexpr std::int64_t kLanes = sizeof(V) / 4, kEach = kChains / Streams;
  V sums[kChains] = {};
  const std::int64_t part = count / Streams;
  for (std::int64_t i = 0; i < part; i += kEach * kLanes)
#pragma GCC unroll 16
    for (std::int64_t c = 0; c < kChains; ++c) {
      V v;
      std::memcpy(&v, all + c / kEach * part + i + c % kEach * kLanes, sizeof v);
      sums[c] += v;
    }
  for (std::int64_t c = 1; c < kChains; ++c) sums[0] += sums[c];
  return sums[0][0];
}

template <class V>
[[gnu::always_inline]] inline float sum_of(const float* all, std::int64_t count, int streams) {
  return streams == 1 ? sum<V, 1>(all, count) : streams == 2 ? sum<V, 2>(all, count) : sum<V, 4>(all, count);
}

using V16 [[gnu::vector_size(16)]] = float;
using V32 [[gnu::vector_size(32)]] = float;
using V64 [[gnu::vector_size(64)]] = float;

float with_sixteen_bytes(const float* all, std::int64_t count, int streams) { return sum_of<V16>(all, count, streams); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] float with_avx2(const float* all, std::int64_t count, int streams) { return sum_of<V32>(all, count, streams); }
[[gnu::target("avx512f,prefer-vector-width=512")]] float with_avx512(const float* all, std::int64_t count, int streams) {
  return sum_of<V64>(all, count, streams);
}
#endif

using Sum = float (*)(const float*, std::int64_t, int);
Sum widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return with_avx512;
  if (__builtin_cpu_supports("avx2") != 0) return with_avx2;
#endif
  return with_sixteen_bytes;
}

// The table's rows for the indices, `ahead` of which are on their way.
template <std::size_t Row>
void copy_rows(const std::byte* table, std::span<const std::int32_t> indices, std::byte* to, std::size_t ahead) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::byte* next = table + indices[std::min(i + ahead, indices.size() - 1)] * static_cast<std::int64_t>(Row);
    for (std::size_t at = 0; ahead > 0 && at < Row; at += 64) __builtin_prefetch(next + at);
    std::memcpy(to + i * Row, table + indices[i] * static_cast<std::int64_t>(Row), Row);
  }
}

using CopyRows = void (*)(const std::byte*, std::span<const std::int32_t>, std::byte*, std::size_t);
CopyRows copier_of(std::int64_t row_bytes) {
  switch (row_bytes) {
    case 4: return copy_rows<4>;
    case 64: return copy_rows<64>;
    case 128: return copy_rows<128>;
    case 256: return copy_rows<256>;
    case 1024: return copy_rows<1024>;
    default: std::abort();
  }
}

}  // namespace

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::int64_t times_for(std::int64_t bytes) { return std::max<std::int64_t>(1, (1 << 22) / std::max<std::int64_t>(bytes, 64)); }

double copy_seconds(std::int64_t bytes) {
  const auto half = static_cast<std::size_t>(std::max<std::int64_t>(bytes / 2, 64));
  const Buffer from = filled(static_cast<std::int64_t>(half));
  Buffer to = filled(static_cast<std::int64_t>(half));
  return best_seconds(times_for(bytes), [&] { std::memcpy(to.mutable_bytes().data(), from.data(), half); });
}

double read_seconds(std::int64_t bytes) {
  const std::int64_t step = 4 * kChains * 64;
  const std::int64_t whole = std::max(bytes / step, std::int64_t{1}) * step;
  const Buffer from = filled(whole);
  volatile float result = 0;
  double best = INFINITY;
  for (const int streams : {1, 2, 4})
    best = std::min(best, best_seconds(times_for(whole), [&] { result = widest()(from.as<float>().data(), whole / 4, streams); }));
  return best * static_cast<double>(bytes) / static_cast<double>(whole);
}

double rows_seconds(std::span<const std::byte> table, std::int64_t row_bytes, std::span<const std::int32_t> indices,
                    std::span<std::byte> to) {
  const CopyRows copy = copier_of(row_bytes);
  double best = INFINITY;
  const std::int64_t times = times_for(2 * static_cast<std::int64_t>(indices.size()) * row_bytes);
  for (const std::size_t ahead : {0, 8, 16, 32})
    best = std::min(best, best_seconds(times, [&] { copy(table.data(), indices, to.data(), ahead); }));
  return best;
}

}  // namespace hloom::bench
