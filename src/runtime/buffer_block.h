// What the handles of one memory share. Internal to runtime/.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "hloom/error.h"
#include "hloom/host_allocator.h"

namespace hloom::runtime {

struct BufferBlock {
  /// With one handle. Errors: ResourceExhausted.
  static Expected<BufferBlock*> make();
  /// Calls `release` and gives back the memory.
  static void destroy(BufferBlock*);

  std::atomic<std::int64_t> handles = 1;
  HostBuffer memory;               ///< of the bytes, where they are the pool's or an allocator's
  std::function<void()> release;   ///< where they are the caller's
  HostBuffer self;                 ///< where the block lies
};

}  // namespace hloom::runtime
