// The chunks behind a HostAllocator. Internal to runtime/.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "hloom/error.h"
#include "hloom/host_allocator.h"
#include "runtime/forks.h"
#include "runtime/pages.h"
#include "runtime/size_bins.h"

namespace hloom::runtime {

/// Blocks of chunks: best fit, with free neighbours joined; in front of them bins for small sizes. Lives until the
/// allocator and all its buffers are gone.
class HostMemory final : public SurvivesFork {
 public:
  explicit HostMemory(HostAllocator::Options options);
  ~HostMemory();

  struct Piece {
    std::byte* data = nullptr;
    std::int32_t bin = -1;  ///< -1: a block of its very size
  };
  Expected<Piece> allocate(const HostAllocator::Request& request);
  /// Needs: a piece that was allocated with that size.
  void free(const Piece&, std::int64_t size_bytes);
  Expected<> warm(std::int64_t size_bytes, int numa_node);
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
  using Blocks = std::pmr::map<std::int64_t, Block>;  ///< by offset; they cover the chunk
  struct Chunk {
    Pages pages;
    Kind kind;
    Blocks blocks;
  };
  using Chunks = std::map<std::uintptr_t, Chunk>;                ///< by address
  using Place = std::tuple<std::int64_t, Chunk*, std::int64_t>;  ///< a free block: size, chunk, offset

  void before_fork() override;
  void after_fork(bool in_child) override;

  std::int32_t bin_of(const HostAllocator::Request&) const;
  Expected<> count(std::int64_t size_bytes);
  void uncount(std::int64_t size_bytes);
  Expected<std::byte*> allocate_block(const Kind&, std::int64_t size_bytes, std::int64_t alignment);
  std::byte* take_block(const Kind&, std::int64_t size_bytes, std::int64_t alignment);
  void free_block(std::byte*);
  bool has_too_much() const;
  void empty_bins();

  std::optional<Place> find(const Kind& kind, std::int64_t size_bytes, std::int64_t alignment) const;
  std::byte* take(const Place& place, std::int64_t size_bytes, std::int64_t alignment);
  Expected<Chunk> make_chunk(const Kind& kind, std::int64_t size_bytes, std::int64_t alignment);
  std::int64_t join(Chunk& chunk, std::int64_t offset);
  void add_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes);
  void remove_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes);
  Chunk extract(Chunks::iterator at);
  void give_back(Chunk chunk) const;

  const HostAllocator::Options options_;
  SizeBins bins_;
  std::atomic<std::int64_t> max_cached_bytes_;
  std::atomic<std::int64_t> bytes_in_use_ = 0, peak_bytes_in_use_ = 0, num_buffers_ = 0, chunk_bytes_ = 0;

  mutable std::mutex mutex_;  ///< of what follows
  std::pmr::unsynchronized_pool_resource nodes_;  ///< of maps: once they have been larger they allocate nothing
  Chunks chunks_;
  std::map<Kind, std::pmr::set<Place>> free_;
};

}  // namespace hloom::runtime
