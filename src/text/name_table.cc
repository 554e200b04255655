#include "text/name_table.h"

#include <cstring>

#include "text/cursor.h"

namespace hloom::text {
namespace {

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t h = name.size();
  const char* p = name.data();
  std::size_t left = name.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t chunk = 0;
    std::memcpy(&chunk, p, 8);
    h = (h ^ chunk) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, p, left);
  h = (h ^ rest) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}

}  // namespace

std::string_view NameTable::name_at(std::uint64_t key) const {
  const char* start = text_.data() + (key & ((1ull << kOffsetBits) - 1)) - 1;
  const char* stop = start;
  while (stop < text_.data() + text_.size() && chars::is(*stop, chars::kName)) ++stop;
  return {start, static_cast<std::size_t>(stop - start)};
}

// The slot that has the name, or the free one where it would go.
std::size_t NameTable::slot_of(std::string_view name, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.key == 0) return i;
    if (slot.key >> kOffsetBits != hash >> kOffsetBits) continue;
    const char* other = text_.data() + (slot.key & ((1ull << kOffsetBits) - 1)) - 1;
    const auto left = static_cast<std::size_t>(text_.data() + text_.size() - other);
    if (name.size() > left || std::memcmp(other, name.data(), name.size()) != 0) continue;
    if (name.size() == left || !chars::is(other[name.size()], chars::kName)) return i;
  }
}

NameTable::Entry NameTable::find(std::string_view name) const {
  if (slots_.empty()) return {};
  const Slot& slot = slots_[slot_of(name, hash_of(name))];
  if (slot.key == 0) return {};
  return {slot.instruction, name_at(slot.key).data()};
}

void NameTable::insert(std::string_view name, hlo::Instruction* instruction) {
  if (used_ * 4 >= slots_.size() * 3) grow();
  const std::uint64_t hash = hash_of(name);
  Slot& slot = slots_[slot_of(name, hash)];
  if (slot.key == 0) ++used_;
  const auto offset = static_cast<std::uint64_t>(name.data() - text_.data()) + 1;
  slot = {instruction, offset | hash >> kOffsetBits << kOffsetBits};
}

void NameTable::grow() {
  std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.key == 0) continue;
    const std::string_view name = name_at(slot.key);
    slots_[slot_of(name, hash_of(name))] = slot;
  }
}

std::vector<std::string_view> NameTable::names() const {
  std::vector<std::string_view> all;
  for (const Slot& slot : slots_)
    if (slot.key != 0) all.push_back(name_at(slot.key));
  return all;
}

}  // namespace hloom::text
