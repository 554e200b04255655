// A long line goes digit by digit as a short one does, each digit in three calls: parts of the line count their digits; one
// call turns the counts into the places at which each part's entries of a digit begin, part after part, so that the sort is
// stable; the parts move their entries there. Of a line whose first few are wanted, parts keep their own first, and one call
// chooses among those.
#include "library/long_sort.h"

#include <array>
#include <bit>
#include <vector>

#include "library/sort_line.h"

namespace hloom::library {
namespace {

using namespace sorting;

constexpr std::int64_t kLongLine = 1 << 16;
constexpr std::int64_t kFewLines = 3;
constexpr std::int64_t kPart = 1 << 15;
constexpr std::int64_t kMaxParts = 64;
constexpr int kDigitBits = 11;
constexpr std::size_t kDigitValues = std::size_t{1} << kDigitBits;

// Behind the descriptor's other words: what a call does.
struct Pass {
  std::int64_t line, parts, part, key, shift, takes_keys, is_first;
};

// What calls tell each other, at the start of the workspace; then counts, a row for each part; then two halves of entries.
struct State {
  std::int64_t current, source, skipped;  // halves, and whether a digit is the same for all
};
constexpr std::int64_t kStateBytes = 64;

const Pass& pass_of(const View& v) {
  const std::int64_t arrays = v.header.operands + v.header.results;
  return *reinterpret_cast<const Pass*>(v.strides + arrays * v.header.outer_rank);
}

template <class K>
struct Work {
  explicit Work(void* const* buffers)
      : v(view_of(buffers[0])), pass(pass_of(v)), arrays(buffers + 2), state(*static_cast<State*>(buffers[1])),
        counts(reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(buffers[1]) + kStateBytes)),
        entries(reinterpret_cast<Entry<K>*>(counts + pass.parts * static_cast<std::int64_t>(kDigitValues))) {}

  std::span<Entry<K>> part(std::int64_t half, std::int64_t number) const {
    const std::int64_t from = number * pass.part, to = std::min(from + pass.part, v.header.length);
    return {entries + half * v.header.length + from, static_cast<std::size_t>(std::max<std::int64_t>(to - from, 0))};
  }
  std::uint32_t* counts_of(std::int64_t number) const { return counts + number * static_cast<std::int64_t>(kDigitValues); }

  View v;
  const Pass& pass;
  void* const* arrays;
  State& state;
  std::uint32_t* counts;
  Entry<K>* entries;
};

template <class K>
std::size_t digit(K key, std::int64_t shift) {
  return static_cast<std::size_t>(key >> shift) & (kDigitValues - 1);
}

template <class K>
void number_entries(std::span<Entry<K>> entries, std::int64_t from) {
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].position = static_cast<std::uint32_t>(from) + static_cast<std::uint32_t>(i);
}

template <class K>
void count(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const Work<K> w(buffers);
  const Key& key = w.v.keys[w.pass.key];
  const Array& array = w.v.arrays[key.operand];
  for (std::int64_t p = begin; p < end; ++p) {
    const auto entries = w.part(w.pass.is_first != 0 ? 0 : w.state.current, p);
    if (w.pass.is_first != 0) number_entries(entries, p * w.pass.part);
    if (w.pass.takes_keys != 0)
      take_keys(start_of(w.v, w.arrays, key.operand, w.pass.line), array.stride * array.width, key, entries);
    std::uint32_t* const counts = w.counts_of(p);
    std::fill_n(counts, kDigitValues, 0U);
    for (const Entry<K>& e : entries) ++counts[digit(e.key, w.pass.shift)];
  }
}

template <class K>
void place(void* const* buffers, std::int64_t, std::int64_t, void*) {
  const Work<K> w(buffers);
  std::array<std::uint32_t, kDigitValues> next{};
  for (std::int64_t p = 0; p < w.pass.parts; ++p)
    for (std::size_t d = 0; d < kDigitValues; ++d) next[d] += w.counts_of(p)[d];
  const std::int64_t current = w.pass.is_first != 0 ? 0 : w.state.current;
  const bool same = std::ranges::find(next, static_cast<std::uint32_t>(w.v.header.length)) != next.end();
  w.state = {same ? current : 1 - current, current, same};
  std::uint32_t sum = 0;
  for (std::uint32_t& n : next) sum += std::exchange(n, sum);
  for (std::int64_t p = 0; p < w.pass.parts; ++p)
    for (std::size_t d = 0; d < kDigitValues; ++d) next[d] += std::exchange(w.counts_of(p)[d], next[d]);
}

template <class K>
void move_digits(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const Work<K> w(buffers);
  if (w.state.skipped != 0) return;
  Entry<K>* const to = w.entries + (1 - w.state.source) * w.v.header.length;
  for (std::int64_t p = begin; p < end; ++p) {
    std::uint32_t* const next = w.counts_of(p);
    for (const Entry<K>& e : w.part(w.state.source, p)) to[next[digit(e.key, w.pass.shift)]++] = e;
  }
}

template <class K>
void give_parts(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const Work<K> w(buffers);
  for (std::int64_t p = begin; p < end; ++p) {
    const std::int64_t from = p * w.pass.part, kept = std::clamp<std::int64_t>(w.v.header.kept - from, 0, w.pass.part);
    const std::span<const Entry<K>> entries = w.part(w.state.current, p);
    give(w.v, w.arrays, w.pass.line, from, entries.first(std::min(entries.size(), static_cast<std::size_t>(kept))));
  }
}

// --- The first few

// The kept ones of each part lie at the start of what it has of the first half.
template <class K>
void keep_of_parts(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const Work<K> w(buffers);
  const Key& key = w.v.keys[0];
  const Array& array = w.v.arrays[key.operand];
  for (std::int64_t p = begin; p < end; ++p) {
    const auto entries = w.part(0, p);
    const std::byte* const line = start_of(w.v, w.arrays, key.operand, w.pass.line);
    const std::int64_t kept = std::min(w.v.header.kept, std::ssize(entries)), from = p * w.pass.part;
    if (kept > 0 && kept <= kInserted) {
      keep_of_line(line, array.stride * array.width, key, from, from + std::ssize(entries), entries.first(static_cast<std::size_t>(kept)));
      continue;
    }
    number_entries(entries, from);
    take_keys(line, array.stride * array.width, key, entries);
    keep_first(entries, kept);
  }
}

template <class K>
void keep_of_all(void* const* buffers, std::int64_t, std::int64_t, void*) {
  const Work<K> w(buffers);
  Entry<K>* end = w.entries;
  for (std::int64_t p = 0; p < w.pass.parts; ++p) {
    const auto entries = w.part(0, p);
    const auto kept = static_cast<std::ptrdiff_t>(std::min(w.v.header.kept, std::ssize(entries)));
    end = std::copy(entries.begin(), entries.begin() + kept, end);
  }
  const std::span<Entry<K>> all(w.entries, end);
  keep_first(all, w.v.header.kept);
  give<K>(w.v, w.arrays, w.pass.line, 0, all.first(static_cast<std::size_t>(w.v.header.kept)));
}

// --- The plan

bool keeps_few(const SortProblem& p) { return p.keys.size() == 1 && p.kept * 8 < p.length; }

std::int64_t parts_of(const SortProblem& p) {
  const std::int64_t least = keeps_few(p) ? std::max(kPart, 8 * p.kept) : kPart;
  return std::clamp<std::int64_t>(p.length / least, 1, kMaxParts);
}

template <class K>
class Planner {
 public:
  Planner(const SortProblem& p, const base::AlignedBytes& descriptor) : p_(p), descriptor_(descriptor), parts_(parts_of(p)) {
    part_ = (p.length + parts_ - 1) / parts_;
    plan_.workspace_bytes = kStateBytes + parts_ * static_cast<std::int64_t>(kDigitValues * sizeof(std::uint32_t)) +
                            2 * p.length * static_cast<std::int64_t>(sizeof(Entry<K>));
  }

  void add_line(std::int64_t line) {
    Pass pass{line, parts_, part_, 0, 0, 1, 1};
    if (keeps_few(p_)) {
      call(keep_of_parts<K>, pass, parts_, part_ * 8);
      call(keep_of_all<K>, pass, 1, parts_ * p_.kept * 16);
      return;
    }
    for (pass.key = std::ssize(p_.keys); pass.key-- > 0;)
      for (pass.shift = 0, pass.takes_keys = 1; pass.shift < key_bits(pass.key); pass.shift += kDigitBits, pass.takes_keys = 0) {
        call(count<K>, pass, parts_, part_ * 8);
        call(place<K>, pass, 1, parts_ * static_cast<std::int64_t>(kDigitValues));
        call(move_digits<K>, pass, parts_, part_ * 16);
        pass.is_first = 0;
      }
    call(give_parts<K>, pass, parts_, part_ * 8 * std::ssize(p_.results));
  }
  RoutinePlan finish() && { return std::move(plan_); }

 private:
  std::int64_t key_bits(std::int64_t key) const {
    return 8 * p_.operands[static_cast<std::size_t>(p_.keys[static_cast<std::size_t>(key)].operand)].width_bytes;
  }

  void call(base::KernelFunction function, const Pass& pass, std::int64_t blocks, std::int64_t block_cost) {
    using Kind = Argument::Kind;
    const auto words = std::bit_cast<std::array<std::byte, sizeof(Pass)>>(pass);
    std::vector<std::byte> bytes(descriptor_.bytes().begin(), descriptor_.bytes().end());
    bytes.insert(bytes.end(), words.begin(), words.end());
    Routine routine;
    routine.function = function;
    routine.descriptor = base::AlignedBytes(std::span<const std::byte>(bytes));
    routine.arguments = {{Kind::Descriptor, 0}, {Kind::Workspace, 0}};
    for (std::int64_t k = 0; k < std::ssize(p_.operands); ++k) routine.arguments.push_back({Kind::Operand, k});
    for (std::int64_t k = 0; k < std::ssize(p_.results); ++k) routine.arguments.push_back({Kind::Result, k});
    routine.blocks = blocks;
    routine.block_cost = block_cost;
    plan_.calls.push_back(std::move(routine));
  }

  const SortProblem& p_;
  const base::AlignedBytes& descriptor_;
  const std::int64_t parts_;
  std::int64_t part_ = 0;
  RoutinePlan plan_;
};

template <class K>
RoutinePlan plan_lines(const SortProblem& p, std::int64_t lines, const base::AlignedBytes& descriptor) {
  Planner<K> planner(p, descriptor);
  for (std::int64_t line = 0; line < lines; ++line) planner.add_line(line);
  return std::move(planner).finish();
}

}  // namespace

bool is_long_sort(const SortProblem& p, std::int64_t lines) {
  return lines <= kFewLines && p.length >= kLongLine && p.kept > 0 && parts_of(p) > 1;
}

RoutinePlan plan_long_sort(const SortProblem& p, std::int64_t lines, bool wide, const base::AlignedBytes& descriptor) {
  return wide ? plan_lines<std::uint64_t>(p, lines, descriptor) : plan_lines<std::uint32_t>(p, lines, descriptor);
}

}  // namespace hloom::library
