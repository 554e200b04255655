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


namespace hloom::library {
namespace {

using Order = SortKey::Order;

constexpr std::int64_t kInserted = 32;         // as many are sorted by insertion
constexpr std::int64_t kWideDigits = 1 << 15;  // from here the passes cost more than their counts
constexpr std::int64_t kBlockElements = 2048;
constexpr std::int64_t kCountBytes = 6 * 2048 * 4;  // of the digits of a long key

// The descriptor is these, one after the other: words of 64 bits.
struct Header {
  std::int64_t length, kept, lines, lines_per_block, keys, operands, results, outer_rank;
};
struct Key {
  std::int64_t operand, width, order, descending, zeros_equal, nans_equal, infinity;
};
struct Array {
  std::int64_t width, stride;  // bytes of an element; elements from one to the next of a line
};

struct View {
  const Header& header;
  const Key* keys;
  const Array* arrays;         // operands, then results
  const std::int64_t* dims;    // of the lines
  const std::int64_t* strides;  // of each array, one for each of `dims`
};
View view_of(const void* descriptor) {
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

// The first `kept` of the sorted entries, at their places. Few are kept sorted as the others go by; they are rarely beaten.
template <class K>
void keep_first(std::span<Entry<K>> entries, std::int64_t kept) {
  if (kept == 0) return;
  const auto first = entries.first(static_cast<std::size_t>(kept));
  if (kept <= kInserted) {
    insert_all(first);
    for (const Entry<K>& e : entries.subspan(first.size())) {
      if (e.key >= first.back().key) continue;
      first.back() = e;
      insert_last(first);
    }
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

// Lines of one call. Buffers: descriptor, operands, results.
template <class K>
class Lines {
 public:
  Lines(const View& view, void* const* buffers, void* scratch) : v_(view), buffers_(buffers + 1) {
    const auto n = static_cast<std::size_t>(v_.header.length);
    auto* entries = static_cast<Entry<K>*>(scratch);
    first_ = {entries, n};
    second_ = {entries + n, n};
    counts_ = reinterpret_cast<std::uint32_t*>(entries + 2 * n);
  }

  void sort(std::int64_t line) {
    const Header& h = v_.header;
    for (std::size_t i = 0; i < first_.size(); ++i) first_[i].position = static_cast<std::uint32_t>(i);
    std::span<Entry<K>> sorted = first_, other = second_;
    for (std::int64_t k = h.keys; k-- > 0;) {
      const Key& key = v_.keys[k];
      const Array& array = v_.arrays[key.operand];
      take_keys(start(key.operand, line), array.stride * array.width, key, sorted);
      if (h.keys == 1 && h.kept * 8 < h.length) {
        keep_first(sorted, h.kept);
      } else {
        const auto now = sort_entries(sorted, other, counts_);
        if (now.data() != sorted.data()) std::swap(sorted, other);
      }
    }
    give(line, sorted.first(static_cast<std::size_t>(h.kept)));
  }

 private:
  void give(std::int64_t line, std::span<const Entry<K>> entries) const {
    const Header& h = v_.header;
    for (std::int64_t k = 0; k < h.operands; ++k)
      move(start(k, line), v_.arrays[k], start(h.operands + k, line), v_.arrays[h.operands + k], entries);
    if (h.results == h.operands) return;
    std::byte* to = start(2 * h.operands, line);
    const std::int64_t stride = v_.arrays[2 * h.operands].stride * 4;
    for (std::size_t i = 0; i < entries.size(); ++i) std::memcpy(to + static_cast<std::int64_t>(i) * stride, &entries[i].position, 4);
  }

  std::byte* start(std::int64_t array, std::int64_t line) const {
    const std::int64_t* strides = v_.strides + array * v_.header.outer_rank;
    std::int64_t offset = 0;
    for (std::int64_t d = v_.header.outer_rank; d-- > 0;) {
      offset += line % v_.dims[d] * strides[d];
      line /= v_.dims[d];
    }
    return static_cast<std::byte*>(buffers_[array]) + offset * v_.arrays[array].width;
  }

  const View& v_;
  void* const* buffers_;
  std::span<Entry<K>> first_, second_;
  std::uint32_t* counts_;
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
    for (const SortArray& array : *arrays) words.add(Array{array.width_bytes, array.stride});
  for (const std::int64_t d : p.outer_dims) words.add(d);
  for (const auto* arrays : {&p.operands, &p.results})
    for (const SortArray& array : *arrays)
      for (const std::int64_t stride : array.outer_strides) words.add(stride);

  using Kind = Argument::Kind;
  Routine routine;
  routine.function = wide ? sort_blocks<std::uint64_t> : sort_blocks<std::uint32_t>;
  routine.descriptor = words.bytes();
  routine.arguments.push_back({Kind::Descriptor, 0});
  for (std::int64_t k = 0; k < std::ssize(p.operands); ++k) routine.arguments.push_back({Kind::Operand, k});
  for (std::int64_t k = 0; k < std::ssize(p.results); ++k) routine.arguments.push_back({Kind::Result, k});
  routine.blocks = (lines + per_block - 1) / per_block;
  routine.block_cost = per_block * n * 32;
  const auto entry_bytes = static_cast<std::int64_t>(wide ? sizeof(Entry<std::uint64_t>) : sizeof(Entry<std::uint32_t>));
  routine.scratch_bytes = 2 * n * entry_bytes + kCountBytes;
  RoutinePlan plan;
  plan.calls.push_back(std::move(routine));
  return plan;
}

}  // namespace hloom::library
