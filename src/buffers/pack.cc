#include "buffers/pack.h"

#include <algorithm>
#include <functional>

namespace hloom::buffers {
namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

std::int64_t most_alive(const std::vector<Block>& blocks) {
  std::vector<std::pair<std::int32_t, std::int64_t>> events;
  for (const Block& b : blocks)
    for (const Interval& i : b.live.parts()) {
      events.emplace_back(i.begin, aligned(b.bytes));
      events.emplace_back(i.end, -aligned(b.bytes));
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
          ranges.emplace_back(offsets_[other], offsets_[other] + aligned(blocks_[other].bytes));
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

// The tightest gap of at least `bytes` between sorted ranges; behind all of them if there is none.
std::int64_t best_gap(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, std::int64_t bytes) {
  std::int64_t end = 0, best = -1, best_size = 0;
  for (const auto& [from, to] : ranges) {
    const std::int64_t gap = from - end;
    if (gap >= bytes && (best < 0 || gap < best_size)) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

Packing place_in_order(const std::vector<Block>& blocks, const std::vector<std::size_t>& order) {
  Packing result;
  result.offsets.resize(blocks.size());
  Placed placed(blocks, result.offsets);
  for (const std::size_t n : order) {
    if (blocks[n].bytes == 0) continue;
    result.offsets[n] = best_gap(placed.met_by(n), aligned(blocks[n].bytes));
    result.bytes = std::max(result.bytes, result.offsets[n] + aligned(blocks[n].bytes));
    placed.add(n);
  }
  return result;
}

}  // namespace

Packing pack(const std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  const auto size = [&](std::size_t n) { return static_cast<double>(blocks[n].bytes); };
  const auto life = [&](std::size_t n) { return static_cast<double>(blocks[n].live.length()); };
  const auto begin = [&](std::size_t n) {
    return blocks[n].live.empty() ? 0.0 : -static_cast<double>(blocks[n].live.begin());
  };
  const std::function<double(std::size_t)> keys[] = {size, [&](std::size_t n) { return size(n) * life(n); }, life,
                                                     begin};
  const std::int64_t lower_bound = most_alive(blocks);
  Packing best;
  for (const auto& key : keys) {
    std::ranges::stable_sort(order, std::greater(), key);
    Packing packing = place_in_order(blocks, order);
    if (best.offsets.empty() || packing.bytes < best.bytes) best = std::move(packing);
    if (best.bytes == lower_bound) break;
  }
  best.lower_bound = lower_bound;
  return best;
}

}  // namespace hloom::buffers
