// Fourier transforms of any length, type and rank.
#pragma once

#include <cstdint>
#include <vector>

#include "library/routine.h"

namespace hloom::library {

enum class FftKind : std::uint8_t { Forward, Inverse, RealForward, RealInverse };  ///< as HLO's FFT, IFFT, RFFT, IRFFT

/// A transform of the last `lengths.size()` dimensions of a row-major operand, all others being batch.
struct FftProblem {
  FftKind kind = FftKind::Forward;
  bool is_double = false;             ///< parts of 8 bytes, else of 4
  std::vector<std::int64_t> dims;     ///< of the operand
  std::vector<std::int64_t> lengths;  ///< HLO's fft_length: 1 to 3
};

/// Arena bytes that the transform needs. Cost: none to speak of, other than plan_fft's.
std::int64_t fft_workspace_bytes(const FftProblem&);

/// The passes of a transform: a dimension each, or two or three for a dimension that is cut. A pass reads lines of which the
/// neighbours go side by side through vectors, in blocks of 64 bytes' worth; blocks may run at the same time.
/// The result may be the operand's memory if they have one shape. Needs: lengths that fit the dimensions (hlo-ops 8.5).
/// Cost: as the longest dimension's tables, sines and cosines in long double.
RoutinePlan plan_fft(const FftProblem&);

}  // namespace hloom::library
