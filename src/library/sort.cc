#include "library/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "library/long_sort.h"
#include "library/sort_line.h"

namespace hloom::library {
namespace {

using namespace sorting;

constexpr std::int64_t kBlockElements = 2048;

// What a line needs of scratch: entries, of which a second set only where digits move them, then counts of digits.
struct Room {
  std::int64_t entries = 0, second = 0, count_bytes = 0;
  bool has_all = true;  ///< the line's entries, else those that are kept
};
template <class K>
Room room_of(const Header& h) {
  const bool keeps_few = h.keys == 1 && h.kept * 8 < h.length;
  if (h.keys == 1 && h.kept <= kInserted && h.kept * 4 <= h.length) return {h.kept, 0, 0, false};
  if (keeps_few) return {h.length, 0, 0};
  if (h.length <= kInserted) return {h.length, 0, 0};
  return {h.length, h.length, digit_count_bytes<K>(h.length)};
}

// Lines of one call. Buffers: descriptor, operands, results.
template <class K>
class Lines {
 public:
  Lines(const View& view, void* const* buffers, void* scratch) : v_(view), buffers_(buffers + 1) {
    const Room room = room_of<K>(v_.header);
    auto* entries = static_cast<Entry<K>*>(scratch);
    first_ = {entries, static_cast<std::size_t>(room.entries)};
    second_ = {entries + room.entries, static_cast<std::size_t>(room.second)};
    counts_ = reinterpret_cast<std::uint32_t*>(entries + room.entries + room.second);
    has_all_ = room.has_all;
  }

  void sort(std::int64_t line) {
    const Header& h = v_.header;
    if (!has_all_) return keep_few(line);
    for (std::size_t i = 0; i < first_.size(); ++i) first_[i].position = static_cast<std::uint32_t>(i);
    std::span<Entry<K>> sorted = first_, other = second_;
    for (std::int64_t k = h.keys; k-- > 0;) {
      const Key& key = v_.keys[k];
      const Array& array = v_.arrays[key.operand];
      take_keys(start_of(v_, buffers_, key.operand, line), array.stride * array.width, key, sorted);
      if (h.keys == 1 && h.kept * 8 < h.length) {
        keep_first(sorted, h.kept);
      } else {
        const auto now = sort_entries(sorted, other, counts_);
        if (now.data() != sorted.data()) std::swap(sorted, other);
      }
    }
    const std::span<const Entry<K>> kept = sorted.first(static_cast<std::size_t>(h.kept));
    give(v_, buffers_, line, 0, kept);
  }

 private:
  // The first ones kept sorted as the others go by.
  void keep_few(std::int64_t line) {
    const Header& h = v_.header;
    const Key& key = v_.keys[0];
    const Array& array = v_.arrays[key.operand];
    const std::byte* const from = start_of(v_, buffers_, key.operand, line);
    if (h.kept > 0) keep_of_line<K>(from, array.stride * array.width, key, 0, h.length, first_);
    give<K>(v_, buffers_, line, 0, first_);
  }

  const View& v_;
  void* const* buffers_;
  std::span<Entry<K>> first_, second_;
  std::uint32_t* counts_;
  bool has_all_ = true;
};

template <class K>
void sort_blocks(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  const View view = view_of(buffers[0]);
  Lines<K> lines(view, buffers, scratch);
  const std::int64_t last = std::min(end * view.header.lines_per_block, view.header.lines);
  for (std::int64_t line = begin * view.header.lines_per_block; line < last; ++line) lines.sort(line);
}

/// Collects the words of a descriptor.
class Words {
 public:
  template <class T>
  void add(const T& part) {
    static_assert(sizeof(T) % 8 == 0);
    const auto words = std::bit_cast<std::array<std::int64_t, sizeof(T) / 8>>(part);
    words_.insert(words_.end(), words.begin(), words.end());
  }
  base::AlignedBytes bytes() const { return base::AlignedBytes(std::as_bytes(std::span(words_))); }

 private:
  std::vector<std::int64_t> words_;
};

}  // namespace

RoutinePlan plan_sort(const SortProblem& p) {
  const std::int64_t n = p.length;
  const std::int64_t lines = std::accumulate(p.outer_dims.begin(), p.outer_dims.end(), std::int64_t{1}, std::multiplies());
  const std::int64_t per_block = std::clamp<std::int64_t>(kBlockElements / n, 1, lines);
  const auto width_of = [&](const SortKey& key) { return p.operands[static_cast<std::size_t>(key.operand)].width_bytes; };
  const bool wide = std::ranges::any_of(p.keys, [&](const SortKey& key) { return width_of(key) > 4; });

  Words words;
  words.add(Header{n, p.kept, lines, per_block, std::ssize(p.keys), std::ssize(p.operands), std::ssize(p.results),
                   std::ssize(p.outer_dims)});
  for (const SortKey& key : p.keys)
    words.add(Key{key.operand, width_of(key), static_cast<std::int64_t>(key.order), key.descending, key.zeros_equal,
                  key.nans_equal, std::bit_cast<std::int64_t>(key.infinity)});
  for (const auto* arrays : {&p.operands, &p.results})
    for (const SortArray& array : *arrays) words.add(Array{array.width_bytes, array.stride, array.start, array.source});
  for (const std::int64_t d : p.outer_dims) words.add(d);
  for (const auto* arrays : {&p.operands, &p.results})
    for (const SortArray& array : *arrays)
      for (const std::int64_t stride : array.outer_strides) words.add(stride);

  if (is_long_sort(p, lines)) return plan_long_sort(p, lines, wide, words.bytes());
  using Kind = Argument::Kind;
  Routine routine;
  routine.function = wide ? sort_blocks<std::uint64_t> : sort_blocks<std::uint32_t>;
  routine.descriptor = words.bytes();
  routine.arguments.push_back({Kind::Descriptor, 0});
  for (std::int64_t k = 0; k < std::ssize(p.operands); ++k) routine.arguments.push_back({Kind::Operand, k});
  for (std::int64_t k = 0; k < std::ssize(p.results); ++k) routine.arguments.push_back({Kind::Result, k});
  routine.blocks = (lines + per_block - 1) / per_block;
  routine.block_cost = per_block * n * 32;
  const auto scratch_bytes = [&]<class K>(K) {
    const Room room = room_of<K>(Header{n, p.kept, lines, per_block, std::ssize(p.keys), 0, 0, 0});
    return (room.entries + room.second) * static_cast<std::int64_t>(sizeof(Entry<K>)) + room.count_bytes;
  };
  routine.scratch_bytes = wide ? scratch_bytes(std::uint64_t{}) : scratch_bytes(std::uint32_t{});
  RoutinePlan plan;
  plan.calls.push_back(std::move(routine));
  return plan;
}

}  // namespace hloom::library
