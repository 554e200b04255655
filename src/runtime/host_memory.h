// The chunks behind a HostAllocator. Internal to runtime/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "hloom/error.h"
#include "hloom/host_allocator.h"
#include "runtime/pages.h"

namespace hloom::runtime {

/// Best fit, with free neighbours joined. Lives until the allocator and all its buffers are gone.
class HostMemory {
 public:
  explicit HostMemory(HostAllocator::Options options) : options_(std::move(options)) {}
  ~HostMemory();

  Expected<std::byte*> allocate(const HostAllocator::Request& request);
  void free(std::byte* data);
  void trim();
  /// From now on no chunk is kept for later.
  void close();
  HostAllocator::Statistics statistics() const;

 private:
  using Kind = std::pair<std::optional<int>, int>;  ///< device and node: memory that is alike
  struct Block {
    std::int64_t size_bytes = 0;
    bool free = true;
  };
  struct Chunk {
    Pages pages;
    Kind kind;
    std::map<std::int64_t, Block> blocks;  ///< by offset; they cover the chunk
  };
  using Chunks = std::map<std::uintptr_t, Chunk>;          ///< by address
  using Place = std::tuple<std::int64_t, Chunk*, std::int64_t>;  ///< a free block: size, chunk, offset

  std::optional<Place> find(const Kind& kind, std::int64_t size_bytes, std::int64_t alignment) const;
  std::byte* take(const Place& place, std::int64_t size_bytes, std::int64_t alignment);
  Expected<Chunk> make_chunk(const Kind& kind, std::int64_t size_bytes, std::int64_t alignment) const;
  std::int64_t join(Chunk& chunk, std::int64_t offset);
  void add_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes);
  void remove_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes);
  Chunk extract(Chunks::iterator at);
  void give_back(Chunk chunk) const;

  HostAllocator::Options options_;
  mutable std::mutex mutex_;
  Chunks chunks_;
  std::map<Kind, std::set<Place>> free_;
  HostAllocator::Statistics statistics_;
};

}  // namespace hloom::runtime
