// One pass of a Fourier transform: what the kernels read. Internal to library/.
//
// A pass transforms many lines at once. Lines are numbered by coordinates (a, b, i); 64 bytes' worth of neighbours go
// through the arithmetic side by side, one in each lane of the vectors, so any length vectorizes alike and no value
// depends on which lines stand beside. A pass is
//
//     load · multiply by `pre` · transform of `core` points · [multiply by `mid` · transform back] · multiply by `post` · store
//
// where `pre`, `mid`, `post` are tables, so that the same code is a plain pass, half of a long line cut in two
// (twiddles between), and Bluestein's convolution (chirps around, the chirp's transform in the middle).
#pragma once

#include <cstdint>

#include "base/kernel_abi.h"

namespace hloom::library {

/// Points of lines side by side in a group, for parts of `part_bytes`.
constexpr std::int64_t fft_lanes(std::int64_t part_bytes) { return 64 / part_bytes; }

enum class FftLoad : std::int32_t {
  Complex,
  Real,
  Hermitian,  ///< X[j] for j ≤ n/2, conj(X[n-j]) beyond, n = hermitian_points
  PackHalf,   ///< core + 1 points of a symmetric line of 2·core, as core points whose transform is the real line in pairs
};
enum class FftStore : std::int32_t {
  Complex,
  Real,
  UnpackHalf,  ///< the inverse of PackHalf's work, for a real line that was read in pairs
};

/// Factors for element e of a line with coordinate b: pairs of parts at offset_bytes + (e·element_stride + b·line_stride) pairs.
struct FftTable {
  std::int64_t offset_bytes = 0;  ///< from the descriptor's begin; 0: no table
  std::int64_t element_stride = 0, line_stride = 0;
  std::int32_t conjugate = 0, unused = 0;
};

/// Addresses in elements: base + a·by_a + b·by_b + i·by_i + e·by_e.
struct FftAddress {
  std::int64_t by_a = 0, by_b = 0, by_i = 0, by_e = 0;
};

/// Of all elements e < count, those with e·by_e + b·by_b < limit are there.
struct FftBounds {
  std::int64_t count = 0, by_e = 1, by_b = 0, limit = 0;
};

struct FftPass {
  static constexpr int kMaxFactors = 48;

  std::int32_t is_double = 0;
  std::int32_t inverse = 0;
  FftLoad load = FftLoad::Complex;
  FftStore store = FftStore::Complex;
  std::int64_t core = 1;                       ///< points of the transform
  std::int64_t points = 1;                     ///< of a line that a block holds, before zeros fill it up to `core`
  std::int64_t hermitian_points = 0;
  std::int64_t count_a = 1, count_b = 1, count_i = 1;
  std::int64_t groups_in_a = 0;                ///< > 0: groups of lanes for each a; 0: groups run over all lines
  FftAddress in, out;
  FftBounds loads, stores;
  FftTable pre, mid, post;
  std::int64_t half_offset_bytes = 0;          ///< exp(-2πi·k/(2·core)) for PackHalf and UnpackHalf
  double scale = 1;
  std::int64_t num_factors = 0;
  std::int32_t factors[kMaxFactors] = {};
  std::int64_t twiddle_offset_bytes[kMaxFactors] = {};  ///< for each factor; the last needs none
  std::int64_t root_offset_bytes[kMaxFactors] = {};     ///< exp(-2πi·k/factor) of an odd factor

  std::int64_t num_lines() const { return count_a * count_b * count_i; }
};

/// Runs groups [begin, end): buffers are the descriptor (an FftPass and its tables), input, output. The scratch is
/// fft_scratch_bytes(). The one for the widest vectors of this processor; all give the same bits.
void run_fft(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch);

/// Two buffers of one more point than the larger of the two counts.
std::int64_t fft_scratch_bytes(const FftPass&);

// The same for each vector width, compiled with the flags that it needs.
void run_fft_plain(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch);
void run_fft_avx2(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch);
void run_fft_avx512(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch);

}  // namespace hloom::library
