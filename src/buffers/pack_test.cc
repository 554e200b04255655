#include "buffers/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hloom::buffers {
namespace {

constexpr std::int64_t kUnit = kArenaAlignment;

std::vector<Block> random_blocks(unsigned seed, int count, int time) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int k = 0; k < count; ++k) {
    std::vector<Interval> parts;
    for (unsigned p = 1 + random() % 2; p > 0; --p) {
      const auto begin = static_cast<std::int32_t>(random() % static_cast<unsigned>(time));
      parts.push_back({begin, begin + 1 + static_cast<std::int32_t>(random() % 4)});
    }
    blocks.push_back({static_cast<std::int64_t>(1 + random() % (4 * kUnit)), Intervals(parts)});
  }
  return blocks;
}

void expect_legal(const std::vector<Block>& blocks, const Packing& p) {
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    if (blocks[a].bytes >= kUnit) {
      EXPECT_EQ(p.offsets[a] % kUnit, 0);
    } else {
      EXPECT_EQ(p.offsets[a] / kUnit, (p.offsets[a] + blocks[a].bytes - 1) / kUnit);
    }
    EXPECT_LE(p.offsets[a] + blocks[a].bytes, p.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      const bool apart =
          p.offsets[a] + blocks[a].bytes <= p.offsets[b] || p.offsets[b] + blocks[b].bytes <= p.offsets[a];
      EXPECT_TRUE(apart || !overlap(blocks[a].live, blocks[b].live)) << a << " and " << b;
    }
  }
}

// The smallest arena: each order of placing at the lowest free place reaches every packing that cannot be lowered.
std::int64_t best_bytes(const std::vector<Block>& blocks) {
  const auto up = [&](std::int64_t at, std::size_t n) {
    const std::int64_t alignment = alignment_of(blocks[n].bytes);
    return (at + alignment - 1) / alignment * alignment;
  };
  std::vector<std::size_t> order(blocks.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::int64_t best = INT64_MAX;
  do {
    std::vector<std::int64_t> offsets(blocks.size());
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      std::int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t l = 0; l < k; ++l) {
          const std::size_t a = order[k], b = order[l];
          if (!overlap(blocks[a].live, blocks[b].live)) continue;
          if (at < offsets[b] + blocks[b].bytes && offsets[b] < at + blocks[a].bytes) {
            at = up(offsets[b] + blocks[b].bytes, a);
            moved = true;
          }
        }
      }
      offsets[order[k]] = at;
      bytes = std::max(bytes, at + blocks[order[k]].bytes);
    }
    best = std::min(best, bytes);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(Pack, NeverOverlapsWhatLivesTogether) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto blocks = random_blocks(seed, 40, 60);
    const Packing p = pack(blocks);
    expect_legal(blocks, p);
    EXPECT_GE(p.bytes, p.lower_bound);
  }
}

TEST(Pack, IsCloseToTheBestOnSmallInstances) {
  std::int64_t sum = 0, best_sum = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto blocks = random_blocks(seed, 6, 10);
    const std::int64_t best = best_bytes(blocks);
    const Packing p = pack(blocks);
    EXPECT_LE(p.lower_bound, best);
    EXPECT_GE(p.bytes, best);
    sum += p.bytes;
    best_sum += best;
  }
  EXPECT_LE(static_cast<double>(sum), 1.01 * static_cast<double>(best_sum));
}

TEST(Pack, ReusesWhatEnded) {
  std::vector<Block> chain;
  for (std::int32_t k = 0; k < 100; ++k) chain.push_back({(100 - k) * kUnit, Intervals({{k, k + 2}})});
  const Packing p = pack(chain);
  expect_legal(chain, p);
  EXPECT_EQ(p.bytes, p.lower_bound);
  EXPECT_EQ(p.lower_bound, (100 + 99) * kUnit);
}

TEST(Pack, LivesWithHolesAreFilled) {
  const std::vector<Block> blocks{{kUnit, Intervals({{0, 2}, {8, 10}})}, {kUnit, Intervals({{3, 7}})}};
  EXPECT_EQ(pack(blocks).bytes, kUnit);
}

// Where nothing else is at the time, and only what may lie at such an address.
TEST(Pack, ShelvesAreUsedWhileTheyAreFree) {
  int shelved = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::vector<Block> blocks = random_blocks(seed, 40, 60);
    std::mt19937 random(seed);
    for (Block& b : blocks) b.address_alignment = 1 << random() % 7;
    std::vector<Shelf> shelves;
    for (int s = 0; s < 4; ++s) {
      const Block taken = random_blocks(seed + 1000 * static_cast<unsigned>(s + 1), 1, 60)[0];
      shelves.push_back({static_cast<std::int64_t>(random() % (8 * kUnit)), taken.live, 1 << random() % 4});
    }
    const Packing p = pack(blocks, PackEffort::Full, shelves);
    EXPECT_GE(p.bytes, p.lower_bound);
    std::vector<Block> in_arena;
    Packing arena = p;
    arena.offsets.clear();
    for (std::size_t a = 0; a < blocks.size(); ++a) {
      if (p.shelves[a] < 0) {
        in_arena.push_back(blocks[a]);
        arena.offsets.push_back(p.offsets[a]);
        continue;
      }
      ++shelved;
      const Shelf& shelf = shelves[static_cast<std::size_t>(p.shelves[a])];
      EXPECT_LE(blocks[a].address_alignment, shelf.address_alignment);
      EXPECT_FALSE(overlap(blocks[a].live, shelf.taken));
      EXPECT_LE(p.offsets[a] + blocks[a].bytes, shelf.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool apart =
            p.offsets[a] + blocks[a].bytes <= p.offsets[b] || p.offsets[b] + blocks[b].bytes <= p.offsets[a];
        EXPECT_TRUE(apart || p.shelves[a] != p.shelves[b] || !overlap(blocks[a].live, blocks[b].live));
      }
    }
    expect_legal(in_arena, arena);
  }
  EXPECT_GT(shelved, 200);
}

TEST(Pack, AShelfMakesTheArenaSmaller) {
  const std::vector<Block> blocks{{4 * kUnit, Intervals({{0, 2}}), 1, 4}, {2 * kUnit, Intervals({{1, 3}}), 1, 4}};
  EXPECT_EQ(pack(blocks).bytes, 6 * kUnit);
  const std::vector<Shelf> shelves{{4 * kUnit, Intervals({{2, 9}}), 4}};
  const Packing p = pack(blocks, PackEffort::Full, shelves);
  EXPECT_EQ(p.bytes, 2 * kUnit);
  EXPECT_EQ(p.lower_bound, 2 * kUnit);
  EXPECT_EQ(p.shelves, (std::vector<std::int32_t>{0, -1}));
}

// Few blocks meet by a table, many by stretches of time: blocks without bytes make many of few.
TEST(Pack, ManyBlocksArePlacedAsFewAre) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    std::vector<Block> blocks = random_blocks(seed, 700, 300);
    const Packing few = pack(blocks, PackEffort::Quick);
    expect_legal(blocks, few);
    blocks.resize(2500);
    const Packing many = pack(blocks, PackEffort::Quick);
    EXPECT_EQ(many.bytes, few.bytes);
    EXPECT_TRUE(std::equal(few.offsets.begin(), few.offsets.end(), many.offsets.begin()));
  }
}

TEST(Pack, OfNothingIsNothing) {
  EXPECT_EQ(pack({}).bytes, 0);
  EXPECT_EQ(pack({{0, Intervals({{0, 1}})}}).bytes, 0);
}

TEST(Intervals, EqualSetsOfPoints) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Intervals sets[2];
    bool points[2][40] = {};
    for (int s = 0; s < 2; ++s) {
      std::vector<Interval> parts;
      for (int k = 0; k < 4; ++k) {
        const auto begin = static_cast<std::int32_t>(random() % 36),
                   end = begin + static_cast<std::int32_t>(random() % 5);
        parts.push_back({begin, end});
        for (std::int32_t p = begin; p < end; ++p) points[s][p] = true;
      }
      sets[s] = Intervals(parts);
    }
    const Intervals both = united(sets[0], sets[1]), shared(intersection(sets[0], sets[1]));
    std::int64_t length = 0;
    for (std::int32_t p = 0; p < 40; ++p) {
      EXPECT_EQ(sets[0].contains(p), points[0][p]);
      EXPECT_EQ(both.contains(p), points[0][p] || points[1][p]);
      EXPECT_EQ(shared.contains(p), points[0][p] && points[1][p]);
      length += points[0][p] ? 1 : 0;
    }
    EXPECT_EQ(sets[0].length(), length);
    EXPECT_EQ(overlap(sets[0], sets[1]), !shared.empty());
  }
}

}  // namespace
}  // namespace hloom::buffers
