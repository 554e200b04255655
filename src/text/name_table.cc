#include "text/name_table.h"

#include <cstring>

#include "hlo/name_set.h"
#include "text/cursor.h"

namespace hloom::text {
namespace {

// As many bits as a slot keeps; enough to find the slot in a larger table.
std::uint32_t kept_hash(std::string_view name) { return hlo::hash_name(name) & ((1u << 28) - 1); }

}  // namespace

bool NameTable::holds(const Slot& slot, std::string_view name) const {
  const char* start = start_of(slot);
  const auto left = static_cast<std::size_t>(text_.data() + text_.size() - start);
  if (name.size() > left || std::memcmp(start, name.data(), name.size()) != 0) return false;
  return name.size() == left || !chars::is(start[name.size()], chars::kName);
}

// The slot that has the name, or the free one where it would go.
std::size_t NameTable::slot_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask)
    if (slots_[i].key == 0 || (slots_[i].key >> kOffsetBits == hash && holds(slots_[i], name))) return i;
}

NameTable::Entry NameTable::find(std::string_view name) const {
  if (slots_.empty()) return {};
  const Slot& slot = slots_[slot_of(name, kept_hash(name))];
  if (slot.key == 0) return {};
  return {slot.instruction, start_of(slot)};
}

NameTable::Entry NameTable::add(std::string_view name) {
  if (used_ * 4 >= slots_.size() * 3) grow();
  const std::uint32_t hash = kept_hash(name);
  const std::size_t i = slot_of(name, hash);
  if (slots_[i].key != 0) return {slots_[i].instruction, start_of(slots_[i])};
  const auto offset = static_cast<std::uint64_t>(name.data() - text_.data()) + 1;
  slots_[i] = {nullptr, offset | std::uint64_t{hash} << kOffsetBits};
  ++used_;
  last_ = i;
  return {};
}

void NameTable::set(std::string_view name, hlo::Instruction* instruction) {
  if (start_of(slots_[last_]) != name.data()) last_ = slot_of(name, kept_hash(name));
  slots_[last_].instruction = instruction;
}

void NameTable::grow() {
  std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.key == 0) continue;
    std::size_t i = slot.key >> kOffsetBits & mask;
    while (slots_[i].key != 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

std::vector<std::string_view> NameTable::names() const {
  std::vector<std::string_view> all;
  for (const Slot& slot : slots_) {
    if (slot.key == 0) continue;
    const char* start = start_of(slot);
    const char* stop = start;
    while (stop < text_.data() + text_.size() && chars::is(*stop, chars::kName)) ++stop;
    all.emplace_back(start, static_cast<std::size_t>(stop - start));
  }
  return all;
}

}  // namespace hloom::text
