// Small memory that was given back, by size: what most requests take. Internal to runtime/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace hloom::runtime {

/// Lists of free pieces, a list for each size, in shards of which a thread uses one: its own, until there are more
/// threads than shards. The links lie in the pieces. Thread-safe; a piece may come back on any thread.
class SizeBins {
 public:
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 20;

  /// The bin of a size, at most a quarter (below 256 bytes: 63 bytes) larger. Needs: 0 < size_bytes <= kMaxBytes.
  static std::int32_t bin_of(std::int64_t size_bytes);
  static std::int64_t bytes_of(std::int32_t bin);

  /// A piece of this thread's shard, or null.
  std::byte* take(std::int32_t bin);
  /// Keeps the piece, unless the shard has enough or close() was called: then false.
  bool give(std::int32_t bin, std::byte* piece);
  /// Takes out all pieces of all shards.
  std::vector<std::byte*> drain();
  /// Keeps nothing from now on.
  void close();

  /// Around fork(), so that the child finds no lock held.
  void lock_all();
  void unlock_all();

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kBins = 56;
  static constexpr std::int64_t kMaxShardBytes = std::int64_t{4} << 20;
  struct Free {
    Free* next;
  };
  struct alignas(128) Shard {
    std::mutex mutex;
    bool closed = false;
    std::int64_t bytes = 0;
    std::array<Free*, kBins> first = {};
  };
  Shard& own();

  std::array<Shard, kShards> shards_;
};

}  // namespace hloom::runtime
