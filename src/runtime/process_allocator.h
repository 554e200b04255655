// The memory that programs and buffers share.
#pragma once

#include "hloom/host_allocator.h"

namespace hloom::runtime {

/// Arenas, scratch, results and buffers come from it unless the caller brings an allocator. It never ends.
HostAllocator& process_allocator();

}  // namespace hloom::runtime
