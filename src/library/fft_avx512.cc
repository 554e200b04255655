#include "library/fft_pass.h"

namespace hloom::library {
namespace {

constexpr int kVectorBytes = 64;
#include "library/fft_lanes.inc"
#include "library/fft_kernels.inc"

}  // namespace

void run_fft_avx512(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  run(buffers, begin, end, scratch);
}

}  // namespace hloom::library
