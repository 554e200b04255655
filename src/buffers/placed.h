// Blocks that have offsets already, found by the time in which they live. Internal to buffers/.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "buffers/pack.h"

namespace hloom::buffers {

/// Byte ranges [first, second).
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Blocks for which Meetings has a table: half a megabyte.
inline constexpr std::size_t kMostInTable = 2048;

/// Which blocks are alive together, or beside each other: a table, made once for all orders that are tried, for as many
/// blocks as most programs have; of more, stretches of time, and neighbours do not count.
class Meetings {
 public:
  explicit Meetings(const std::vector<Block>&);

  bool has_table() const { return !table_.empty(); }
  /// Needs: has_table().
  bool meet(std::size_t a, std::size_t b) const { return (table_[a * words_ + b / 64] >> (b % 64) & 1) != 0; }

  const std::vector<Block>& blocks() const { return blocks_; }
  /// Calls f with the number of each stretch of time that the block lives in; some more than once.
  template <typename F>
  void for_stretches(std::size_t n, const F& f) const {
    for (const Interval& i : blocks_[n].live.parts())
      for (std::int32_t s = i.begin >> shift_; s <= (i.end - 1) >> shift_; ++s) f(static_cast<std::size_t>(s));
  }
  std::size_t num_stretches() const { return num_stretches_; }

 private:
  void fill_table();
  void note_neighbours();
  void note(std::size_t a, std::size_t b);

  const std::vector<Block>& blocks_;
  std::vector<std::uint64_t> table_;
  std::size_t words_ = 0, num_stretches_ = 0;
  int shift_ = 0;
};

/// The blocks placed so far in one order.
class Placed {
 public:
  explicit Placed(const Meetings&);

  /// Block `n` lies at `offset`.
  void add(std::size_t n, std::int64_t offset);
  /// The byte ranges of those that meet `n` in time, in order. Valid until the next call.
  const Ranges& met_by(std::size_t n);

 private:
  struct Stretch {
    std::int64_t begin = 0, end = 0;
    std::size_t n = 0;
  };
  void find_by_stretches(std::size_t n);

  const Meetings& meetings_;
  std::vector<Stretch> sorted_;  ///< by offset: with a table
  std::vector<std::vector<std::size_t>> stretches_;
  std::vector<std::size_t> all_;
  std::vector<std::int64_t> offsets_, seen_;
  Ranges ranges_;
};

}  // namespace hloom::buffers
