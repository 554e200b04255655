#include "buffers/placed.h"

#include <algorithm>
#include <unordered_map>

namespace hloom::buffers {
namespace {

constexpr std::int32_t kStretches = 256;

}  // namespace

Meetings::Meetings(const std::vector<Block>& blocks) : blocks_(blocks) {
  std::int32_t end = 0;
  for (const Block& b : blocks) end = std::max(end, b.live.empty() ? 0 : b.live.end());
  while ((end >> shift_) > kStretches) ++shift_;
  num_stretches_ = static_cast<std::size_t>(end >> shift_) + 1;
  if (blocks.size() <= kMostInTable) fill_table();
}

void Meetings::note(std::size_t a, std::size_t b) {
  table_[a * words_ + b / 64] |= std::uint64_t{1} << (b % 64);
  table_[b * words_ + a / 64] |= std::uint64_t{1} << (a % 64);
}

// In the order of time, each that begins meets those that have begun and not ended.
void Meetings::fill_table() {
  struct Life {
    Interval at;
    std::size_t n = 0;
  };
  words_ = blocks_.size() / 64 + 1;
  table_.resize(blocks_.size() * words_ + 1);
  std::vector<Life> lives, alive;
  for (std::size_t n = 0; n < blocks_.size(); ++n)
    for (const Interval& i : blocks_[n].live.parts()) lives.push_back({i, n});
  std::ranges::sort(lives, {}, [](const Life& l) { return l.at.begin; });
  for (const Life& life : lives) {
    std::erase_if(alive, [&](const Life& l) { return l.at.end <= life.at.begin; });
    for (const Life& other : alive) note(life.n, other.n);
    alive.push_back(life);
  }
  note_neighbours();
}

// At each point, those that are used there meet those that have it beside them.
void Meetings::note_neighbours() {
  std::unordered_map<std::int32_t, std::vector<std::size_t>> users;
  for (std::size_t n = 0; n < blocks_.size(); ++n)
    for (const Interval& i : blocks_[n].neighbours.used.parts())
      for (std::int32_t p = i.begin; p < i.end; ++p) users[p].push_back(n);
  for (std::size_t n = 0; n < blocks_.size(); ++n)
    for (const Interval& i : blocks_[n].neighbours.beside.parts())
      for (std::int32_t p = i.begin; p < i.end; ++p)
        for (const std::size_t user : users[p])
          if (user != n) note(n, user);
}

Placed::Placed(const Meetings& meetings) : meetings_(meetings) {
  if (meetings.has_table()) {
    sorted_.reserve(meetings.blocks().size());
    return;
  }
  stretches_.resize(meetings.num_stretches());
  offsets_.resize(meetings.blocks().size());
  seen_.assign(meetings.blocks().size(), -1);
}

void Placed::add(std::size_t n, std::int64_t offset) {
  if (meetings_.has_table()) {
    const auto at = std::ranges::upper_bound(sorted_, offset, {}, &Stretch::begin);
    sorted_.insert(at, {offset, offset + meetings_.blocks()[n].bytes, n});
    return;
  }
  offsets_[n] = offset;
  meetings_.for_stretches(n, [&](std::size_t s) {
    if (stretches_[s].empty() || stretches_[s].back() != n) stretches_[s].push_back(n);
  });
  all_.push_back(n);
}

const Ranges& Placed::met_by(std::size_t n) {
  ranges_.clear();
  if (!meetings_.has_table()) {
    find_by_stretches(n);
    std::ranges::sort(ranges_);
    return ranges_;
  }
  for (const Stretch& s : sorted_)
    if (meetings_.meet(n, s.n)) ranges_.emplace_back(s.begin, s.end);
  return ranges_;
}

void Placed::find_by_stretches(std::size_t n) {
  const std::vector<Block>& blocks = meetings_.blocks();
  const auto look_at = [&](const std::vector<std::size_t>& others) {
    for (const std::size_t other : others) {
      if (seen_[other] == static_cast<std::int64_t>(n)) continue;
      seen_[other] = static_cast<std::int64_t>(n);
      if (overlap(blocks[n].live, blocks[other].live))
        ranges_.emplace_back(offsets_[other], offsets_[other] + blocks[other].bytes);
    }
  };
  std::size_t in_stretches = 0;
  meetings_.for_stretches(n, [&](std::size_t s) { in_stretches += stretches_[s].size(); });
  if (in_stretches < all_.size())
    meetings_.for_stretches(n, [&](std::size_t s) { look_at(stretches_[s]); });
  else
    look_at(all_);
}

}  // namespace hloom::buffers
