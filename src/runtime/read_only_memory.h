// Memory for constants: filled once, then read.
//
//   std::span<std::byte> room = TRY(memory.add(4096));
//   … fill it …
//   TRY(memory.protect());
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hloom/error.h"
#include "runtime/pages.h"

namespace hloom::runtime {

/// Pages of their own, so that they can be protected: who writes there by mistake ends the process (SIGSEGV) instead of
/// changing what later runs read. Small pieces share pages. The memory lives as long as this does.
class ReadOnlyMemory {
 public:
  /// Zeroed room at a multiple of 64, to be filled before protect(). Errors: ResourceExhausted.
  Expected<std::span<std::byte>> add(std::int64_t size_bytes);
  /// From now on nothing that was added may be written. Errors: ResourceExhausted if the system refuses.
  Expected<> protect();
  /// Whole pages.
  std::int64_t mapped_bytes() const;

 private:
  struct Chunk {
    Pages pages;
    std::int64_t used_bytes = 0;
    bool is_protected = false;
  };
  std::vector<Chunk> chunks_;
};

}  // namespace hloom::runtime
