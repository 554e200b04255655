// Which stores go past the caches.
#pragma once

#include <cstdint>

#include "base/target.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Bytes of a result from which on it pays to write it past the caches: half of the shared cache, or, where another step
/// of the same run reads the result (`read_again`), all of it.
std::int64_t least_streamed_bytes(const base::Target&, bool read_again);

/// Marks the stores by lanes to arguments of at least `least_bytes` that share no memory with others and are not read by
/// the kernel: a line that is being read is in the cache anyway. Only those of whole lines, or of parts of lines
/// that follow one another: a line that is sent in pieces far apart goes to memory several times.
/// Needs: Argument::may_overlap is set where it holds. Cost: linear.
void stream_stores(Kernel&, std::int64_t least_bytes);

}  // namespace hloom::kernels
