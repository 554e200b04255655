// What sorts of short and of long lines share: the descriptor, keys as ordered numbers, digits. Internal to library/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "library/sort.h"

namespace hloom::library::sorting {

using Order = SortKey::Order;

inline constexpr std::int64_t kInserted = 32;         // as many are sorted by insertion
inline constexpr std::int64_t kWideDigits = 1 << 15;  // from here the passes cost more than their counts

// The descriptor is these, one after the other: words of 64 bits.
struct Header {
  std::int64_t length, kept, lines, lines_per_block, keys, operands, results, outer_rank;
};
struct Key {
  std::int64_t operand, width, order, descending, zeros_equal, nans_equal, infinity;
};
struct Array {
  std::int64_t width, stride;  // bytes of an element; elements from one to the next of a line
  std::int64_t start, source;  // as SortArray
};

struct View {
  const Header& header;
  const Key* keys;
  const Array* arrays;         // operands, then results
  const std::int64_t* dims;    // of the lines
  const std::int64_t* strides;  // of each array, one for each of `dims`
};
inline View view_of(const void* descriptor) {
  const auto* header = static_cast<const Header*>(descriptor);
  const auto* keys = reinterpret_cast<const Key*>(header + 1);
  const auto* arrays = reinterpret_cast<const Array*>(keys + header->keys);
  const auto* dims = reinterpret_cast<const std::int64_t*>(arrays + header->operands + header->results);
  return {*header, keys, arrays, dims, dims + header->outer_rank};
}

template <class K>
struct Entry {
  K key;
  std::uint32_t position;
};

// A number whose order among unsigned ones is that of `x` by the key.
template <class U>
U ordered(U x, const Key& key) {
  constexpr int kBits = std::numeric_limits<U>::digits;
  constexpr U kSign = static_cast<U>(U{1} << (kBits - 1));
  if (key.order != static_cast<std::int64_t>(Order::Unsigned)) {
    if (key.order == static_cast<std::int64_t>(Order::Float)) {
      if (key.zeros_equal != 0 && static_cast<U>(x << 1) == 0) x = 0;
      if (key.nans_equal != 0 && static_cast<U>(x & ~kSign) > static_cast<U>(key.infinity)) x = static_cast<U>(~kSign);
      if ((x & kSign) != 0) x = static_cast<U>(x ^ ~kSign);
    }
    x = static_cast<U>(x ^ kSign);
  }
  return key.descending != 0 ? static_cast<U>(~x) : x;
}

template <class U, class K>
void take_keys_as(const std::byte* line, std::int64_t stride, const Key& key, std::span<Entry<K>> entries) {
  for (Entry<K>& e : entries) {
    U bits;
    std::memcpy(&bits, line + static_cast<std::int64_t>(e.position) * stride, sizeof(U));
    e.key = ordered(bits, key);
  }
}

inline constexpr std::int64_t kStretch = 64, kGroup = 16;  // elements whose keys are taken, and looked at, side by side where few are kept

// As ordered(), for a stretch, without branches; keys behind the `rest` of a line mean nothing.
template <class U, bool kDense, class K>
void order_stretch(const std::byte* from, std::int64_t stride, const Key& key, std::int64_t rest, K* keys) {
  constexpr int kBits = std::numeric_limits<U>::digits;
  constexpr U kSign = static_cast<U>(U{1} << (kBits - 1)), kMagnitude = static_cast<U>(~kSign);
  const bool is_float = key.order == static_cast<std::int64_t>(Order::Float);
  const U zeros_below = is_float && key.zeros_equal != 0 ? 1 : 0;  // of twice the bits
  const U nans_above = is_float && key.nans_equal != 0 ? static_cast<U>(key.infinity) : kMagnitude;
  const U turned = is_float ? kMagnitude : 0;  // bits of those with a sign
  const U sign = key.order == static_cast<std::int64_t>(Order::Unsigned) ? 0 : kSign;
  const U flip = static_cast<U>(sign ^ (key.descending != 0 ? static_cast<U>(~U{0}) : U{0}));
  std::array<U, kStretch> bits{};  // apart from all else, so that the loop over them is by vectors
  if (kDense)
    std::memcpy(bits.data(), from, static_cast<std::size_t>(rest < kStretch ? rest : kStretch) * sizeof(U));
  else
    for (std::int64_t i = 0; i < std::min(rest, kStretch); ++i) std::memcpy(&bits[static_cast<std::size_t>(i)], from + i * stride, sizeof(U));
  for (U& x : bits) {
    x = static_cast<U>(static_cast<U>(x << 1) < zeros_below ? 0 : x);
    x = static_cast<U>(static_cast<U>(x & kMagnitude) > nans_above ? kMagnitude : x);
    const U negative = static_cast<U>(U{0} - static_cast<U>(x >> (kBits - 1)));
    x = static_cast<U>(x ^ (negative & turned) ^ flip);
  }
  std::ranges::copy(bits, keys);
}
template <class U, class K>
void order_stretch_as(const std::byte* from, std::int64_t stride, const Key& key, std::int64_t rest, K* keys) {
  if (stride == sizeof(U)) return order_stretch<U, true>(from, stride, key, rest, keys);
  order_stretch<U, false>(from, stride, key, rest, keys);
}
template <class K>
void take_stretch(const std::byte* from, std::int64_t stride, const Key& key, std::int64_t rest, K* keys) {
  switch (key.width) {
    case 1: return order_stretch_as<std::uint8_t>(from, stride, key, rest, keys);
    case 2: return order_stretch_as<std::uint16_t>(from, stride, key, rest, keys);
    case 4: return order_stretch_as<std::uint32_t>(from, stride, key, rest, keys);
    default:
      if constexpr (sizeof(K) == 8) return order_stretch_as<std::uint64_t>(from, stride, key, rest, keys);
  }
}
template <class K>
void take_keys(const std::byte* line, std::int64_t stride, const Key& key, std::span<Entry<K>> entries) {
  switch (key.width) {
    case 1: return take_keys_as<std::uint8_t>(line, stride, key, entries);
    case 2: return take_keys_as<std::uint16_t>(line, stride, key, entries);
    case 4: return take_keys_as<std::uint32_t>(line, stride, key, entries);
    default:
      if constexpr (sizeof(K) == 8) return take_keys_as<std::uint64_t>(line, stride, key, entries);
  }
}

// The last entry to its place among the others, which are sorted; behind equal ones.
template <class K>
void insert_last(std::span<Entry<K>> entries) {
  const Entry<K> e = entries.back();
  std::size_t to = entries.size() - 1;
  for (; to > 0 && entries[to - 1].key > e.key; --to) entries[to] = entries[to - 1];
  entries[to] = e;
}
template <class K>
void insert_all(std::span<Entry<K>> entries) {
  for (std::size_t n = 2; n <= entries.size(); ++n) insert_last(entries.first(n));
}

template <int kDigitBits, class K>
inline constexpr std::int64_t kDigitCounts = ((8 * sizeof(K) + kDigitBits - 1) / kDigitBits) << kDigitBits;
/// Bytes of the counts that sort_entries() needs for so many.
template <class K>
std::int64_t digit_count_bytes(std::int64_t entries) {
  const std::int64_t counts = entries < kWideDigits ? kDigitCounts<8, K> : kDigitCounts<11, K>;
  return counts * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

// Stable; gives the half that holds the sorted entries. `counts` has room for all digits.
template <int kDigitBits, class K>
std::span<Entry<K>> sort_by_digits(std::span<Entry<K>> from, std::span<Entry<K>> to, std::uint32_t* counts) {
  constexpr int kKeyBits = 8 * sizeof(K), kDigits = (kKeyBits + kDigitBits - 1) / kDigitBits;
  constexpr std::size_t kValues = std::size_t{1} << kDigitBits;
  constexpr K kMask = static_cast<K>(kValues - 1);
  std::fill_n(counts, kDigits * kValues, 0U);
  for (const Entry<K>& e : from)
    for (int d = 0; d < kDigits; ++d) ++counts[static_cast<std::size_t>(d) * kValues + ((e.key >> (d * kDigitBits)) & kMask)];
  for (int d = 0; d < kDigits; ++d) {
    std::uint32_t* const next = counts + static_cast<std::size_t>(d) * kValues;
    const int shift = d * kDigitBits;
    if (next[(from[0].key >> shift) & kMask] == from.size()) continue;  // one value for all
    std::uint32_t sum = 0;
    for (std::size_t v = 0; v < kValues; ++v) sum += std::exchange(next[v], sum);
    for (const Entry<K>& e : from) to[next[(e.key >> shift) & kMask]++] = e;
    std::swap(from, to);
  }
  return from;
}

template <class K>
std::span<Entry<K>> sort_entries(std::span<Entry<K>> from, std::span<Entry<K>> to, std::uint32_t* counts) {
  if (std::ssize(from) <= kInserted) {
    insert_all(from);
    return from;
  }
  if (std::ssize(from) < kWideDigits) return sort_by_digits<8>(from, to, counts);
  return sort_by_digits<11>(from, to, counts);
}

// Sorted ones stay the first of all that went by; they are rarely beaten. Needs: some.
template <class K>
void keep_better(std::span<Entry<K>> sorted, std::span<const Entry<K>> others) {
  for (const Entry<K>& e : others) {
    if (e.key >= sorted.back().key) continue;
    sorted.back() = e;
    insert_last(sorted);
  }
}

// Whether one of so many keys is less.
template <std::int64_t kCount, class K>
bool some_less(const K* keys, K than) {
  K some = 0;
  for (std::int64_t i = 0; i < kCount; ++i) some |= static_cast<K>(keys[i] < than ? 1 : 0);
  return some != 0;
}

// The least of the entries that went by, ascending. Without branches: which place an entry gets is not to be foreseen.
template <class K>
class Least {
 public:
  explicit Least(std::size_t kept) : kept_(kept) { entries_.fill({std::numeric_limits<K>::max(), std::numeric_limits<std::uint32_t>::max()}); }
  K worst() const { return entries_[kept_ - 1].key; }
  void take(Entry<K> e) {
    for (std::size_t i = 0; i < kept_; ++i) {
      const Entry<K> other = entries_[i];
      const bool before = e.key < other.key || (e.key == other.key && e.position < other.position);
      entries_[i] = {before ? e.key : other.key, before ? e.position : other.position};
      e = {before ? other.key : e.key, before ? other.position : e.position};
    }
  }
  void give(std::span<Entry<K>> to) const { std::copy_n(entries_.begin(), to.size(), to.begin()); }

 private:
  std::size_t kept_;
  std::array<Entry<K>, kInserted> entries_;
};
// Key and position as one number.
template <>
class Least<std::uint32_t> {
 public:
  explicit Least(std::size_t kept) : kept_(kept) { entries_.fill(std::numeric_limits<std::uint64_t>::max()); }
  std::uint32_t worst() const { return static_cast<std::uint32_t>(entries_[kept_ - 1] >> 32); }
  void take(Entry<std::uint32_t> e) {
    std::uint64_t x = static_cast<std::uint64_t>(e.key) << 32 | e.position;
    for (std::size_t i = 0; i < kept_; ++i) {
      const std::uint64_t other = entries_[i];
      entries_[i] = std::min(x, other);
      x = std::max(x, other);
    }
  }
  void give(std::span<Entry<std::uint32_t>> to) const {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = {static_cast<std::uint32_t>(entries_[i] >> 32), static_cast<std::uint32_t>(entries_[i])};
  }

 private:
  std::size_t kept_;
  std::array<std::uint64_t, kInserted> entries_;
};

// The first of a line's elements [begin, end) as sorted entries. Needs: as many elements as `kept` has, or more; some, at most kInserted.
template <class K>
void keep_of_line(const std::byte* line, std::int64_t stride, const Key& key, std::int64_t begin, std::int64_t end, std::span<Entry<K>> kept) {
  Least<K> least(kept.size());
  std::array<K, kStretch> keys;
  std::int64_t missing = std::ssize(kept);  // so many are taken whatever they are
  for (std::int64_t at = begin; at < end; at += kStretch) {
    const std::int64_t n = std::min(kStretch, end - at);
    take_stretch(line + at * stride, stride, key, n, keys.data());
    if (missing == 0 && n == kStretch && !some_less<kStretch>(keys.data(), least.worst())) continue;
    for (std::int64_t group = 0; group < n; group += kGroup) {
      const K* const own = keys.data() + group;
      if (missing == 0 && group + kGroup <= n && !some_less<kGroup>(own, least.worst())) continue;
      for (std::int64_t i = 0; i < std::min(kGroup, n - group); ++i) {
        if (missing == 0 && own[i] >= least.worst()) continue;
        least.take({own[i], static_cast<std::uint32_t>(at + group + i)});
        missing -= missing > 0;
      }
    }
  }
  least.give(kept);
}

// The first `kept` of the sorted entries, at their places.
template <class K>
void keep_first(std::span<Entry<K>> entries, std::int64_t kept) {
  if (kept == 0) return;
  const auto first = entries.first(static_cast<std::size_t>(kept));
  if (kept <= kInserted) {
    insert_all(first);
    keep_better<K>(first, entries.subspan(first.size()));
    return;
  }
  const auto before = [](const Entry<K>& a, const Entry<K>& b) {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  };
  std::nth_element(entries.begin(), entries.begin() + kept, entries.end(), before);
  std::sort(first.begin(), first.end(), before);
}

template <std::size_t kWidth, class K>
void move_as(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
             std::span<const Entry<K>> entries) {
  for (const Entry<K>& e : entries) {
    std::memcpy(to, from + static_cast<std::int64_t>(e.position) * from_stride, kWidth);
    to += to_stride;
  }
}
template <class K>
void move(const std::byte* from, const Array& source, std::byte* to, const Array& target,
          std::span<const Entry<K>> entries) {
  const std::int64_t from_stride = source.stride * source.width, to_stride = target.stride * target.width;
  switch (source.width) {
    case 1: return move_as<1>(from, from_stride, to, to_stride, entries);
    case 2: return move_as<2>(from, from_stride, to, to_stride, entries);
    case 4: return move_as<4>(from, from_stride, to, to_stride, entries);
    case 8: return move_as<8>(from, from_stride, to, to_stride, entries);
    default: return move_as<16>(from, from_stride, to, to_stride, entries);
  }
}

// Where a line begins in an array.
inline std::byte* start_of(const View& v, void* const* arrays, std::int64_t array, std::int64_t line) {
  const std::int64_t* strides = v.strides + array * v.header.outer_rank;
  std::int64_t offset = v.arrays[array].start;
  for (std::int64_t d = v.header.outer_rank; d-- > 0;) {
    offset += line % v.dims[d] * strides[d];
    line /= v.dims[d];
  }
  return static_cast<std::byte*>(arrays[array]) + offset * v.arrays[array].width;
}

// Entries, which are those from `first` on of the sorted ones, to the results.
template <class K>
void give(const View& v, void* const* arrays, std::int64_t line, std::int64_t first, std::span<const Entry<K>> entries) {
  const Header& h = v.header;
  const auto at = [&](std::int64_t array) {
    const Array& a = v.arrays[array];
    return start_of(v, arrays, array, line) + first * a.stride * a.width;
  };
  for (std::int64_t r = h.operands; r < h.operands + h.results; ++r) {
    const Array& array = v.arrays[r];
    if (array.source >= 0) {
      move(start_of(v, arrays, array.source, line), v.arrays[array.source], at(r), array, entries);
      continue;
    }
    std::byte* const to = at(r);
    for (std::size_t i = 0; i < entries.size(); ++i)
      std::memcpy(to + static_cast<std::int64_t>(i) * array.stride * 4, &entries[i].position, 4);
  }
}

}  // namespace hloom::library::sorting
