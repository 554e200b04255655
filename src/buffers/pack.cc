#include "buffers/pack.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace hloom::buffers {
namespace {

constexpr std::int64_t kMostRounds = 60;       // of improving one order
constexpr std::int64_t kMostWork = 20'000'000;  // pairs of blocks looked at in them

std::int64_t rounded_up(std::int64_t offset, std::int64_t alignment) { return (offset + alignment - 1) & -alignment; }

std::int64_t most_alive(const std::vector<Block>& blocks) {
  std::vector<std::pair<std::int32_t, std::int64_t>> events;
  for (const Block& b : blocks)
    for (const Interval& i : b.live.parts()) {
      events.emplace_back(i.begin, b.bytes);
      events.emplace_back(i.end, -b.bytes);
    }
  std::ranges::sort(events);  // ends before begins at one point, since they are negative
  std::int64_t now = 0, most = 0;
  for (const auto& [point, bytes] : events) most = std::max(most, now += bytes);
  return most;
}

/// Blocks that are placed, found by the stretches of time that they live in.
class Placed {
 public:
  Placed(const std::vector<Block>& blocks, std::vector<std::int64_t>& offsets)
      : blocks_(blocks), offsets_(offsets), seen_(blocks.size(), -1) {
    std::int32_t end = 0;
    for (const Block& b : blocks) end = std::max(end, b.live.empty() ? 0 : b.live.end());
    while ((end >> shift_) > kStretches) ++shift_;
    stretches_.resize(static_cast<std::size_t>(end >> shift_) + 1);
  }

  void add(std::size_t n) {
    for_stretches(n, [&](std::vector<std::size_t>& stretch) {
      if (stretch.empty() || stretch.back() != n) stretch.push_back(n);
    });
  }

  // The byte ranges of those that `n` meets, in order.
  std::vector<std::pair<std::int64_t, std::int64_t>> met_by(std::size_t n) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for_stretches(n, [&](const std::vector<std::size_t>& stretch) {
      for (const std::size_t other : stretch) {
        if (seen_[other] == static_cast<std::int64_t>(n)) continue;
        seen_[other] = static_cast<std::int64_t>(n);
        if (overlap(blocks_[n].live, blocks_[other].live))
          ranges.emplace_back(offsets_[other], offsets_[other] + blocks_[other].bytes);
      }
    });
    std::ranges::sort(ranges);
    return ranges;
  }

 private:
  static constexpr std::int32_t kStretches = 4096;

  template <typename F>
  void for_stretches(std::size_t n, const F& f) {
    for (const Interval& i : blocks_[n].live.parts())
      for (std::int32_t s = i.begin >> shift_; s <= (i.end - 1) >> shift_; ++s)
        f(stretches_[static_cast<std::size_t>(s)]);
  }

  const std::vector<Block>& blocks_;
  std::vector<std::int64_t>& offsets_;
  std::vector<std::int64_t> seen_;
  std::vector<std::vector<std::size_t>> stretches_;
  int shift_ = 0;
};

// The tightest gap for the block between sorted ranges; behind all of them if there is none.
std::int64_t best_gap(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, const Block& block) {
  const std::int64_t bytes = block.bytes, alignment = std::max(alignment_of(bytes), block.alignment);
  std::int64_t end = 0, best = -1, best_size = 0;
  for (const auto& [from, to] : ranges) {
    const std::int64_t begin = rounded_up(end, alignment), gap = from - end;
    if (from - begin >= bytes && (best < 0 || gap < best_size)) {
      best = begin;
      best_size = gap;
    }
    end = std::max(end, to);
  }
  return best >= 0 ? best : rounded_up(end, alignment);
}

Packing place_in_order(const std::vector<Block>& blocks, const std::vector<std::size_t>& order) {
  Packing result;
  result.offsets.resize(blocks.size());
  Placed placed(blocks, result.offsets);
  for (const std::size_t n : order) {
    if (blocks[n].bytes == 0) continue;
    result.offsets[n] = best_gap(placed.met_by(n), blocks[n]);
    result.bytes = std::max(result.bytes, result.offsets[n] + blocks[n].bytes);
    placed.add(n);
  }
  return result;
}

}  // namespace

std::int64_t alignment_of(std::int64_t block_bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(block_bytes, kArenaAlignment))));
}

namespace {

using Order = std::vector<std::size_t>;

// What sticks out is placed earlier, halfway to the front or at it, for as long as that does not make it worse.
void improve(const std::vector<Block>& blocks, Order& order, Packing& best, std::int64_t enough) {
  const auto count = static_cast<std::int64_t>(blocks.size());
  for (std::int64_t round = 0; round < kMostRounds && round * count * count < kMostWork; ++round) {
    if (best.bytes <= enough) return;
    const auto top = std::ranges::find_if(
        order, [&](std::size_t n) { return best.offsets[n] + blocks[n].bytes == best.bytes && blocks[n].bytes > 0; });
    Order next = order;
    const auto at = next.begin() + (top - order.begin());
    std::rotate(round % 2 == 0 ? next.begin() : next.begin() + (at - next.begin()) / 2, at, at + 1);
    Packing packing = place_in_order(blocks, next);
    if (packing.bytes > best.bytes) continue;
    best = std::move(packing);
    order = std::move(next);
  }
}

}  // namespace

Packing pack(const std::vector<Block>& blocks, PackEffort effort) {
  Order order(blocks.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  const auto size = [&](std::size_t n) { return static_cast<double>(blocks[n].bytes); };
  const auto life = [&](std::size_t n) { return static_cast<double>(blocks[n].live.length()); };
  const auto begin = [&](std::size_t n) {
    return blocks[n].live.empty() ? 0.0 : -static_cast<double>(blocks[n].live.begin());
  };
  const std::function<double(std::size_t)> keys[] = {size, [&](std::size_t n) { return size(n) * life(n); }, life,
                                                     begin};
  const std::int64_t lower_bound = most_alive(blocks), enough = lower_bound + kArenaAlignment - 1;
  Packing best;
  for (const auto& key : keys) {
    std::ranges::stable_sort(order, std::greater(), key);
    Order improved = order;
    Packing packing = place_in_order(blocks, improved);
    if (effort == PackEffort::Full) improve(blocks, improved, packing, enough);
    if (best.offsets.empty() || packing.bytes < best.bytes) best = std::move(packing);
    if (best.bytes <= enough) break;
  }
  best.lower_bound = lower_bound;
  return best;
}

}  // namespace hloom::buffers
