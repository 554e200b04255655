// Offsets in one arena.
#pragma once

#include <cstdint>
#include <vector>

#include "buffers/intervals.h"

namespace hloom::buffers {

/// Steps that may go on beside each other if they share no memory (concurrency.h), as points in time.
struct Neighbours {
  Intervals used;    ///< at which the memory is read or written
  Intervals beside;  ///< of the steps that may go on beside those
};

/// Whether one is used by a step that may go on beside one that uses the other. The same either way round.
bool are_beside(const Neighbours&, const Neighbours&);

/// Bytes that are needed at some points in time.
struct Block {
  std::int64_t bytes = 0;
  Intervals live;
  std::int64_t alignment = 1;  ///< at least this, a power of two, besides what its size asks for
  /// What its address must be a multiple of, a power of two: less than a line lets it lie on shelves.
  std::int64_t address_alignment = 64;
  Neighbours neighbours = {};
};

/// Memory beside the arena that is there anyway and not in use at some points: a result's before it is written.
struct Shelf {
  std::int64_t bytes = 0;
  Intervals taken;
  std::int64_t address_alignment = 1;
  Neighbours neighbours = {};
};

struct Packing {
  std::vector<std::int64_t> offsets;  ///< of the blocks, multiples of their alignment
  std::vector<std::int32_t> shelves;  ///< on which each block lies, -1: in the arena
  std::int64_t bytes = 0;             ///< of the arena
  std::int64_t lower_bound = 0;       ///< the most bytes alive at a point, less those of the shelves that are free then
};

/// Of blocks of a cache line or more. Smaller ones lie in one line: at a multiple of the next power of two.
inline constexpr std::int64_t kArenaAlignment = 64;
std::int64_t alignment_of(std::int64_t block_bytes);

/// Quick: one pass for each of two orders, for plans that are only compared.
enum class PackEffort : std::uint8_t { Quick, Full };

/// Places all blocks so that no two that are alive together overlap, nor, of up to kMostInTable blocks (placed.h), two
/// that are beside each other. Each in turn goes to the smallest gap among those
/// placed before that it meets in time, on a shelf if one has room; several orders are tried (by size, by size times
/// life, by life, by begin), each improved by placing earlier what sticks out, until one is as good as at the lower bound,
/// and the smallest arena is kept.
/// Cost: for each order, some rounds of the blocks times those that they meet; a bounded number of pairs in all.
/// Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, greedy by size.
Packing pack(const std::vector<Block>&, PackEffort = PackEffort::Full, const std::vector<Shelf>& = {});

}  // namespace hloom::buffers
