#include "buffers/pack.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "buffers/placed.h"

namespace hloom::buffers {
namespace {

constexpr std::int64_t kMostRounds = 60;       // of improving one order
constexpr std::int64_t kCloseEnough = 8192;      // a part in so many more than the lower bound
constexpr std::int64_t kMostWork = 8'000'000;   // pairs of blocks looked at in them

std::int64_t rounded_up(std::int64_t offset, std::int64_t alignment) { return (offset + alignment - 1) & -alignment; }

// The most bytes alive at a point, less those of the shelves that are free there.
std::int64_t most_alive(const std::vector<Block>& blocks, const std::vector<Shelf>& shelves) {
  std::vector<std::pair<std::int32_t, std::int64_t>> events;
  const auto add = [&](const Intervals& live, std::int64_t bytes) {
    for (const Interval& i : live.parts()) {
      events.emplace_back(i.begin, bytes);
      events.emplace_back(i.end, -bytes);
    }
  };
  std::int64_t now = 0, most = 0;
  for (const Block& b : blocks) add(b.live, b.bytes);
  for (const Shelf& s : shelves) {
    add(s.taken, s.bytes);
    now -= s.bytes;
  }
  std::ranges::sort(events);  // ends before begins at one point, since they are negative
  for (const auto& [point, bytes] : events) most = std::max(most, now += bytes);
  return most;
}

/// Shelves and arena one behind the other in one space of addresses, so that one search finds gaps in all.
class Space {
 public:
  Space(const std::vector<Shelf>& shelves, const std::vector<Block>& blocks) : shelves_(shelves) {
    for (const Shelf& s : shelves) {
      starts_.push_back(arena_);
      arena_ = rounded_up(arena_ + s.bytes, kArenaAlignment);
    }
    arena_ = rounded_up(arena_, kMostAlignment);
    find_taking(blocks);
  }

  std::int64_t start(std::size_t shelf) const { return starts_[shelf]; }
  std::int64_t end(std::size_t shelf) const { return starts_[shelf] + shelves_[shelf].bytes; }
  std::int64_t arena() const { return arena_; }
  /// The shelves that may take a block, the smallest first.
  const std::vector<std::size_t>& taking(std::size_t block) const { return taking_[block]; }
  // -1: none.
  std::int32_t shelf_at(std::int64_t address) const {
    if (address >= arena_) return -1;
    return static_cast<std::int32_t>(std::ranges::upper_bound(starts_, address) - starts_.begin() - 1);
  }

 private:
  static constexpr std::int64_t kMostAlignment = 4096;
  static constexpr std::size_t kMostShelves = 128;  // of which the largest are used

  void find_taking(const std::vector<Block>& blocks) {
    std::vector<std::size_t> used;
    for (std::size_t s = 0; s < shelves_.size(); ++s) used.push_back(s);
    std::ranges::stable_sort(used, {}, [&](std::size_t s) { return shelves_[s].bytes; });
    if (used.size() > kMostShelves) used.erase(used.begin(), used.end() - kMostShelves);
    taking_.resize(blocks.size());
    for (std::size_t n = 0; n < blocks.size(); ++n)
      for (const std::size_t s : used)
        if (takes(shelves_[s], blocks[n])) taking_[n].push_back(s);
  }

  static bool takes(const Shelf& s, const Block& b) {
    return b.bytes <= s.bytes && b.address_alignment <= s.address_alignment && b.bytes >= kArenaAlignment &&
           b.alignment == 1 && !overlap(s.taken, b.live) && !are_beside(s.neighbours, b.neighbours);
  }

  const std::vector<Shelf>& shelves_;
  std::vector<std::int64_t> starts_;
  std::int64_t arena_ = 0;
  std::vector<std::vector<std::size_t>> taking_;
};

struct Gap {
  std::int64_t begin = -1, bytes = 0;
};

// The tightest gap for the block between sorted ranges, of those in [from, to).
Gap tightest_gap(const Ranges& ranges, const Block& block, std::int64_t from, std::int64_t to) {
  const std::int64_t bytes = block.bytes, alignment = std::max(alignment_of(bytes), block.alignment);
  std::int64_t end = from;
  Gap best;
  const auto look = [&](std::int64_t next) {
    const std::int64_t begin = rounded_up(end, alignment), gap = next - end;
    if (next - begin >= bytes && (best.begin < 0 || gap < best.bytes)) best = {begin, gap};
  };
  for (auto r = std::ranges::lower_bound(ranges, from, {}, &Ranges::value_type::first);
       r != ranges.end() && r->first < to; ++r) {
    look(r->first);
    end = std::max(end, r->second);
  }
  look(to);
  return best;
}

// On the smallest shelf that has room, else in the arena, behind all that is there if no gap is large enough.
std::int64_t best_place(const Ranges& ranges, const Block& block, std::size_t n, const Space& space) {
  constexpr std::int64_t kNoEnd = INT64_MAX / 2;
  for (const std::size_t s : space.taking(n))
    if (const Gap gap = tightest_gap(ranges, block, space.start(s), space.end(s)); gap.begin >= 0) return gap.begin;
  return tightest_gap(ranges, block, space.arena(), kNoEnd).begin;
}

using Order = std::vector<std::size_t>;

/// What is the same for all orders that are tried.
struct Problem {
  const std::vector<Block>& blocks;
  const Space& space;
  const Meetings& meetings;
};

// The offsets are addresses of the space. The first `kept` of the order stay where they are in `before`. Gives up, with
// more bytes than `most`, as soon as it takes more.
Packing place_in_order(const Problem& p, const Order& order, std::int64_t most, std::size_t kept = 0,
                       const Packing& before = {}) {
  Packing result;
  result.offsets.assign(p.blocks.size(), p.space.arena());
  Placed placed(p.meetings);
  for (std::size_t k = 0; k < order.size() && result.bytes <= most; ++k) {
    const std::size_t n = order[k];
    if (p.blocks[n].bytes == 0) continue;
    result.offsets[n] = k < kept ? before.offsets[n] : best_place(placed.met_by(n), p.blocks[n], n, p.space);
    result.bytes = std::max(result.bytes, result.offsets[n] + p.blocks[n].bytes - p.space.arena());
    placed.add(n, result.offsets[n]);
  }
  return result;
}

}  // namespace

bool are_beside(const Neighbours& a, const Neighbours& b) { return overlap(a.used, b.beside); }

std::int64_t alignment_of(std::int64_t block_bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(block_bytes, kArenaAlignment))));
}

namespace {

// What sticks out is placed earlier, halfway to the front or at it, for as long as that does not make it worse.
void improve(const Problem& p, Order& order, Packing& best, std::int64_t enough) {
  const auto count = static_cast<std::int64_t>(p.blocks.size());
  for (std::int64_t round = 0; round < kMostRounds && round * count * count < kMostWork; ++round) {
    if (best.bytes <= enough) return;
    const std::int64_t end = p.space.arena() + best.bytes;
    const auto top = std::ranges::find_if(
        order, [&](std::size_t n) { return best.offsets[n] + p.blocks[n].bytes == end && p.blocks[n].bytes > 0; });
    Order next = order;
    const auto at = next.begin() + (top - order.begin());
    const auto to = round % 2 == 0 ? next.begin() : next.begin() + (at - next.begin()) / 2;
    std::rotate(to, at, at + 1);
    Packing packing = place_in_order(p, next, best.bytes, static_cast<std::size_t>(to - next.begin()), best);
    if (packing.bytes > best.bytes) continue;
    best = std::move(packing);
    order = std::move(next);
  }
}

}  // namespace

Packing pack(const std::vector<Block>& blocks, PackEffort effort, const std::vector<Shelf>& shelves) {
  const Space space(shelves, blocks);
  const Meetings meetings(blocks);
  const Problem problem{blocks, space, meetings};
  Order order(blocks.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  const auto size = [&](std::size_t n) { return static_cast<double>(blocks[n].bytes); };
  const auto life = [&](std::size_t n) { return static_cast<double>(blocks[n].live.length()); };
  const auto begin = [&](std::size_t n) {
    return blocks[n].live.empty() ? 0.0 : -static_cast<double>(blocks[n].live.begin());
  };
  const std::function<double(std::size_t)> keys[] = {size, [&](std::size_t n) { return size(n) * life(n); }, life,
                                                     begin};
  const std::int64_t lower_bound = most_alive(blocks, shelves);
  const std::int64_t enough = lower_bound + std::max(kArenaAlignment - 1, lower_bound / kCloseEnough);
  constexpr int kQuickPasses = 2;
  int passes = 0;
  Packing best;
  for (const auto& key : keys) {
    std::ranges::stable_sort(order, std::greater(), key);
    Order improved = order;
    const bool is_full = effort == PackEffort::Full;
    Packing packing = place_in_order(problem, improved, is_full || best.offsets.empty() ? INT64_MAX : best.bytes);
    if (is_full) improve(problem, improved, packing, enough);
    if (best.offsets.empty() || packing.bytes < best.bytes) best = std::move(packing);
    if (best.bytes <= enough || (effort == PackEffort::Quick && ++passes == kQuickPasses)) break;
  }
  best.lower_bound = lower_bound;
  for (std::int64_t& offset : best.offsets) {
    best.shelves.push_back(space.shelf_at(offset));
    offset -= best.shelves.back() < 0 ? space.arena() : space.start(static_cast<std::size_t>(best.shelves.back()));
  }
  return best;
}

}  // namespace hloom::buffers
