// Which stores go past the caches.
#pragma once

#include <cstdint>

#include "base/target.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Bytes of a result from which on it pays to write it past the caches.
struct LeastStreamed {
  std::int64_t in_order = 0;  ///< where lines follow one another
  std::int64_t apart = 0;     ///< where each line is far from the one before, as what registers turned over is
};

/// In order: half of the shared cache, or, where another step of the same run reads the result (`read_again`), all of it.
/// Apart: what a core's own cache has no room for; to fetch a line that is then written is slower than all that follows.
LeastStreamed least_streamed_bytes(const base::Target&, bool read_again);

/// Marks the stores by lanes to arguments of at least that many bytes that share no memory with others and are not read by
/// the kernel: a line that is being read is in the cache anyway. Only those of whole lines, or of parts of lines
/// that follow one another: a line that is sent in pieces far apart goes to memory several times.
/// Needs: Argument::may_overlap is set where it holds. Cost: linear.
void stream_stores(Kernel&, const LeastStreamed&);

}  // namespace hloom::kernels
