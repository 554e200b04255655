#include "compiler/checked_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "base/run_status.h"

namespace hloom::compiler {

using runtime::Allocation;
using runtime::Slice;

namespace {

// Around each allocation; even, so that patterns go on in it.
constexpr std::int64_t kGuard = 1024;
constexpr std::int64_t kNear = 64;
constexpr std::int64_t kWidest = 16;  // element

// As s32 and s64 far above and far below all sizes, so that clamped indices differ too. The first is a NaN in every float
// type, and true as a pred; the second an ordinary number, and false at even addresses, where scalars lie.
constexpr std::byte kPatterns[2][2] = {{std::byte{0xF7}, std::byte{0x7F}}, {std::byte{0x00}, std::byte{0xCB}}};

// `from`: where the bytes stand in their allocation.
void fill_pattern(int copy, std::int64_t from, std::byte* to, std::int64_t size_bytes) {
  for (std::int64_t i = 0; i < std::min<std::int64_t>(size_bytes, 2); ++i) to[i] = kPatterns[copy][(from + i) & 1];
  for (std::int64_t done = 2; done < size_bytes; done *= 2)
    std::memcpy(to + done, to, static_cast<std::size_t>(std::min(done, size_bytes - done)));
}

// The first byte that is not of the pattern, or -1.
std::int64_t find_written(int copy, std::int64_t from, const std::byte* bytes, std::int64_t size_bytes) {
  for (std::int64_t i = 0; i < std::min<std::int64_t>(size_bytes, 2); ++i)
    if (bytes[i] != kPatterns[copy][(from + i) & 1]) return i;
  if (size_bytes <= 2 || std::memcmp(bytes, bytes + 2, static_cast<std::size_t>(size_bytes - 2)) == 0) return -1;
  return std::mismatch(bytes + 2, bytes + size_bytes, bytes).first - bytes;
}

// The first byte that differs, or -1.
std::int64_t find_difference(const std::byte* a, const std::byte* b, std::int64_t size_bytes) {
  if (std::memcmp(a, b, static_cast<std::size_t>(size_bytes)) == 0) return -1;
  return std::mismatch(a, a + size_bytes, b).first - a;
}

// What is no value of the program.
bool belongs_to_run(Allocation::Kind kind) {
  return kind == Allocation::Kind::Status || kind == Allocation::Kind::Device || kind == Allocation::Kind::HostPort;
}

std::int64_t end_of(const Slice& s) { return s.offset + s.size_bytes; }

}  // namespace

Expected<CheckedMemory> CheckedMemory::create(const runtime::Program& program) {
  const std::int64_t available = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  std::int64_t sum = 0;
  for (const Allocation& a : program.allocations) {
    sum += 2 * (std::min(a.size_bytes, available) + 2 * kGuard);
    if (sum >= available)
      return fail(Code::ResourceExhausted, program.name, ": to check it needs twice its memory, more than this machine's ",
                  available >> 20, " MiB");
  }
  CheckedMemory all;
  for (std::size_t n = 0; n < program.allocations.size(); ++n) {
    const Allocation& a = program.allocations[n];
    all.same_.push_back(static_cast<std::int32_t>(n));
    Memory& memory = all.memories_.emplace_back();
    memory.size_bytes = a.size_bytes;
    memory.is_watched = !belongs_to_run(a.kind);
    for (int copy = 0; copy < 2; ++copy) {
      base::AlignedBytes& bytes = memory.copies[static_cast<std::size_t>(copy)];
      bytes = base::AlignedBytes(a.size_bytes + 2 * kGuard);
      if (memory.is_watched) fill(copy, bytes.bytes());
      if (a.kind != Allocation::Kind::Constant) continue;
      std::ranges::copy(program.constants[static_cast<std::size_t>(a.number)], bytes.data() + kGuard);
    }
    if (a.kind == Allocation::Kind::Constant && a.size_bytes > 0) memory.stretches[0] = {a.size_bytes, {}};
  }
  const auto allocation_of = [&](Allocation::Kind kind, std::int32_t number) {
    const auto found = std::ranges::find_if(
        program.allocations, [&](const Allocation& a) { return a.kind == kind && a.number == number; });
    return static_cast<std::size_t>(found - program.allocations.begin());
  };
  for (const runtime::Alias& alias : program.aliases)
    all.same_[allocation_of(Allocation::Kind::Parameter, alias.parameter)] =
        static_cast<std::int32_t>(allocation_of(Allocation::Kind::Result, alias.result));
  return all;
}

void CheckedMemory::fill(int copy, std::span<std::byte> bytes) {
  fill_pattern(copy, 0, bytes.data(), static_cast<std::int64_t>(bytes.size()));
}

std::byte* CheckedMemory::at(int copy, const Slice& s) {
  return memory(s).copies[static_cast<std::size_t>(copy)].data() + kGuard + s.offset;
}

void CheckedMemory::poison(Memory& memory, std::int64_t begin, std::int64_t end) {
  for (int copy = 0; copy < 2; ++copy)
    fill_pattern(copy, begin, memory.copies[static_cast<std::size_t>(copy)].data() + kGuard + begin, end - begin);
}

// Drops what lies in the slice, and poisons the parts of it that stand out.
void CheckedMemory::carve(const Slice& s) {
  Memory& m = memory(s);
  auto at = m.stretches.lower_bound(s.offset);
  if (at != m.stretches.begin() && std::prev(at)->second.end > s.offset) --at;
  while (at != m.stretches.end() && at->first < end_of(s)) {
    for (const Value name : at->second.names) {
      where_.erase(name);
      parts_.erase(name);
    }
    if (at->first < s.offset) poison(m, at->first, s.offset);
    if (at->second.end > end_of(s)) poison(m, end_of(s), at->second.end);
    at = m.stretches.erase(at);
  }
}

void CheckedMemory::hold(Value value, const Slice& s) {
  if (s.size_bytes == 0) return;
  carve(s);
  end(value);  // an earlier one of another round of a loop
  memory(s).stretches[s.offset] = {end_of(s), {value}};
  where_[value] = {memory_of(s), s.offset};
}

bool CheckedMemory::holds(Value value, const Slice& s) const {
  if (s.size_bytes == 0) return true;
  const auto found = where_.find(value);
  if (found == where_.end()) return false;
  if (const auto part = parts_.find(value); part != parts_.end())
    return found->second.first == memory_of(s) && part->second == std::pair(s.offset, end_of(s));
  if (found->second != Key{memory_of(s), s.offset}) return false;
  return memory(s).stretches.at(s.offset).end == end_of(s);
}

void CheckedMemory::hold_part(Value part, const Slice& s) {
  end(part);
  Memory& m = memory(s);
  auto at = m.stretches.upper_bound(s.offset);
  if (at == m.stretches.begin()) return;
  --at;
  if (at->second.end < end_of(s)) return;
  at->second.names.push_back(part);
  where_[part] = {memory_of(s), at->first};
  parts_[part] = {s.offset, end_of(s)};
}

void CheckedMemory::clear(const Slice& s) {
  if (s.size_bytes == 0) return;
  carve(s);
  poison(memory(s), s.offset, end_of(s));
}

void CheckedMemory::drop_name(Value value) {
  const auto found = where_.find(value);
  if (found == where_.end()) return;
  std::erase(memories_[static_cast<std::size_t>(found->second.first)].stretches.at(found->second.second).names, value);
  where_.erase(found);
  parts_.erase(value);
}

void CheckedMemory::clear_if_nameless(Key key) {
  Memory& m = memories_[static_cast<std::size_t>(key.first)];
  const auto found = m.stretches.find(key.second);
  if (found == m.stretches.end() || !found->second.names.empty()) return;
  poison(m, found->first, found->second.end);
  m.stretches.erase(found);
}

void CheckedMemory::end(Value value) {
  const auto found = where_.find(value);
  if (found == where_.end()) return;
  const Key key = found->second;
  drop_name(value);
  clear_if_nameless(key);
}

void CheckedMemory::rename(std::span<const Rename> renames) {
  std::vector<std::pair<Key, Value>> added;
  for (const Rename& r : renames)
    if (r.at.size_bytes > 0 && r.from != r.to && holds(r.from, r.at)) added.emplace_back(where_.at(r.from), r.to);
  std::vector<Key> left;
  for (const Rename& r : renames) {
    const auto found = where_.find(r.to);
    if (r.from == r.to || found == where_.end()) continue;
    left.push_back(found->second);
    drop_name(r.to);
  }
  for (const auto& [key, name] : added) {
    memories_[static_cast<std::size_t>(key.first)].stretches.at(key.second).names.push_back(name);
    where_[name] = key;
  }
  for (const Key& key : left) clear_if_nameless(key);
}

std::vector<CheckedMemory::Value> CheckedMemory::contents(const Slice& s) const {
  std::vector<Value> all;
  for (const auto& [begin, stretch] : memory(s).stretches)
    if (begin < end_of(s) && s.offset < stretch.end) all.insert(all.end(), stretch.names.begin(), stretch.names.end());
  return all;
}

// A piece that a value holds, or none does.
std::optional<std::int64_t> CheckedMemory::changed_piece(const Memory& m, std::int64_t begin, std::int64_t end,
                                                         bool holds) const {
  if (begin >= end) return std::nullopt;
  const std::byte* first = m.copies[0].data() + kGuard + begin;
  const std::byte* second = m.copies[1].data() + kGuard + begin;
  const std::int64_t at =
      holds ? find_difference(first, second, end - begin) : find_written(0, begin, first, end - begin);
  if (at < 0) return std::nullopt;
  return begin + at;
}

std::optional<CheckedMemory::Place> CheckedMemory::changed_in(std::int32_t allocation, std::int64_t begin,
                                                              std::int64_t end, std::span<const Slice> allowed) const {
  const Memory& m = memories_[static_cast<std::size_t>(allocation)];
  if (!m.is_watched) return std::nullopt;
  begin = std::max(begin, -kGuard);
  end = std::min(end, m.size_bytes + kGuard);
  // What is allowed, cut out; between that, stretches and what lies between them.
  std::vector<std::int64_t> cuts = {begin, end};
  for (const Slice& s : allowed)
    if (memory_of(s) == allocation) cuts.insert(cuts.end(), {s.offset, end_of(s)});
  for (const auto& [from, stretch] : m.stretches) cuts.insert(cuts.end(), {from, stretch.end});
  std::ranges::sort(cuts);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::int64_t from = std::max(cuts[i], begin), to = std::min(cuts[i + 1], end);
    const Slice piece{allocation, from, to - from};
    if (from >= to) continue;
    const auto covers = [&](const Slice& s) {
      return memory_of(s) == allocation && s.offset <= from && to <= end_of(s);
    };
    if (std::ranges::any_of(allowed, covers)) continue;
    const auto after = m.stretches.upper_bound(from);
    const bool holds = after != m.stretches.begin() && std::prev(after)->second.end > from;
    if (const auto at = changed_piece(m, from, to, holds)) return Place{allocation, *at, contents(piece)};
  }
  return std::nullopt;
}

std::optional<CheckedMemory::Place> CheckedMemory::changed(std::span<const Slice> allowed,
                                                           std::span<const Slice> near) const {
  for (const Slice& s : near) {
    if (auto place = changed_in(memory_of(s), s.offset - kNear, s.offset, allowed)) return place;
    if (auto place = changed_in(memory_of(s), end_of(s), end_of(s) + kNear, allowed)) return place;
  }
  return std::nullopt;
}

std::optional<CheckedMemory::Place> CheckedMemory::changed(std::span<const Slice> allowed) const {
  for (std::size_t n = 0; n < memories_.size(); ++n) {
    const auto allocation = static_cast<std::int32_t>(n);
    if (same_[n] != allocation) continue;
    if (auto place = changed_in(allocation, -kGuard, memories_[n].size_bytes + kGuard, allowed)) return place;
  }
  return std::nullopt;
}

std::optional<std::int64_t> CheckedMemory::difference(const Slice& s) const {
  const std::int64_t found = find_difference(at(0, s), at(1, s), s.size_bytes);
  if (found < 0) return std::nullopt;
  return found;
}

bool CheckedMemory::is_untouched(const Slice& s, std::int64_t byte) const {
  const std::int64_t size = std::min(kWidest, s.size_bytes - byte);
  const auto is_pattern = [&](int copy) { return find_written(copy, s.offset + byte, at(copy, s) + byte, size) < 0; };
  return is_pattern(0) && is_pattern(1);
}

void CheckedMemory::make_same(const Slice& s) {
  std::memcpy(at(1, s), at(0, s), static_cast<std::size_t>(s.size_bytes));
}

}  // namespace hloom::compiler
