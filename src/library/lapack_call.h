// What a LAPACK routine reads: its descriptor, and the matrices of one batch element. Internal to library/.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/kernel_abi.h"
#include "base/run_status.h"
#include "library/lapack_library.h"

namespace hloom::library {

/// The descriptor. Buffers are numbered: operands, then results, as the routine's pattern lists them (lapack.cc).
struct LapackCall {
  static constexpr int kMaxBuffers = 12;
  static constexpr std::int32_t kNone = -1;

  std::int32_t m = 0, n = 0, k = 0, rhs = 0;  ///< dimensions, by their letters in the pattern
  std::int32_t a = 0, u = 0, v = 0, e = 0;
  std::int32_t low = 0, high = 0;
  char uplo = 'L', mode = 'N', side = 'L', trans = 'N', diag = 'N', left_vectors = 'N', right_vectors = 'N';
  bool has_alpha = false;
  std::int32_t lwork = 0, lrwork = 0, liwork = 0, info = kNone;  ///< `info`: number of the buffer that takes it
  std::int64_t rwork_offset = 0, iwork_offset = 0, more_offset = 0;  ///< bytes of scratch before these
  std::int64_t more_bytes = 0;
  std::int32_t pointer[kMaxBuffers] = {};     ///< of each buffer, among the pointers of the call
  std::int64_t bytes[kMaxBuffers] = {};       ///< of each buffer's batch element
};

/// One batch element.
template <typename T>
struct LapackItem {
  using Real = RealOf<T>;

  const LapackCall& c;
  void* const* buffers;
  std::int64_t batch;
  std::byte* scratch;

  template <typename U = T>
  U* at(int buffer) const {
    return reinterpret_cast<U*>(static_cast<std::byte*>(buffers[c.pointer[buffer]]) + batch * c.bytes[buffer]);
  }
  /// Copies an operand to the result that the routine writes over; nothing if they are the same memory.
  void copy(int from, int to) const {
    const char* source = at<char>(from);  // pivots are narrower than T
    if (source != at<char>(to) && c.bytes[from] > 0)
      std::memcpy(at<char>(to), source, static_cast<std::size_t>(c.bytes[from]));
  }
  void clear(int buffer) const {
    if (c.bytes[buffer] > 0) std::memset(at<char>(buffer), 0, static_cast<std::size_t>(c.bytes[buffer]));
  }

  T* work() const { return reinterpret_cast<T*>(scratch); }
  Real* rwork() const { return reinterpret_cast<Real*>(scratch + c.rwork_offset); }
  std::int32_t* iwork() const { return reinterpret_cast<std::int32_t*>(scratch + c.iwork_offset); }
  T* more() const { return reinterpret_cast<T*>(scratch + c.more_offset); }

  /// Tells how it went: in the output for it, or else, where an argument was wrong, by an error.
  void finish(std::int32_t info) const {
    if (c.info != LapackCall::kNone) {
      *at<std::int32_t>(c.info) = info;
    } else if (info < 0) {
      base::report_failure(*static_cast<base::RunStatus*>(buffers[1]), batch,
                           Error(Code::Internal, "LAPACK refuses argument " + std::to_string(-info)));
    }
  }
};

/// A leading dimension: at least 1.
inline std::int32_t leading(std::int32_t rows) { return std::max(rows, 1); }

/// Element counts of work arrays as LAPACK gives them: floats that may have been rounded down.
template <typename T>
std::int32_t count_of(T x) {
  const double wanted = static_cast<double>(std::real(x));
  return static_cast<std::int32_t>(std::min(wanted * (1 + 1e-6) + 1, 2147483647.0));
}

/// A routine: Body::run<T> does a batch element, Body::query<T> fills in how much work memory it takes.
template <typename Body, typename T>
void run_lapack(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  const LapackCall& call = *static_cast<const LapackCall*>(buffers[0]);
  for (std::int64_t batch = begin; batch < end; ++batch)
    Body::template run<T>(LapackItem<T>{call, buffers, batch, static_cast<std::byte*>(scratch)});
}

struct LapackRoutine {
  base::KernelFunction functions[4];
  void (*queries[4])(LapackCall&);
};

template <typename Body>
constexpr LapackRoutine lapack_routine() {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  return {{run_lapack<Body, float>, run_lapack<Body, double>, run_lapack<Body, C64>, run_lapack<Body, C128>},
          {Body::template query<float>, Body::template query<double>, Body::template query<C64>, Body::template query<C128>}};
}

// By family, in lapack_factor.cc, lapack_spectrum.cc, tridiagonal.cc.
extern const LapackRoutine kPotrf, kGetrf, kGeqrf, kGeqp3, kOrgqr, kOrmqr, kTrsm, kGtsv;
extern const LapackRoutine kSyevd, kGeev, kGesdd, kGesvd, kGees, kGehrd, kSytrd;
extern const LapackRoutine kSolvePerturbed;

}  // namespace hloom::library
