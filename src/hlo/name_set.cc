#include "hlo/name_set.h"

#include <cstring>

#include "base/check.h"

namespace hloom::hlo {
namespace {

// Of all but the last byte, times 16, plus the last byte's low bits.
std::uint64_t hash_of(std::string_view name) {
  if (name.empty()) return 0;
  std::uint64_t h = name.size();
  const char* p = name.data();
  std::size_t left = name.size() - 1;
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t chunk = 0;
    std::memcpy(&chunk, p, 8);
    h = (h ^ chunk) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, p, left);
  h = (h ^ rest) * 0x9E3779B97F4A7C15ull;
  return (h ^ h >> 29) << 4 | (static_cast<unsigned char>(name.back()) & 15);
}

// What is kept of a hash: never one of the two marks.
std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 2) | 2; }

}  // namespace

// The slot of the name, or the first free one on its way, which has no owner.
std::size_t NameSet::slot_of(std::string_view name) const {
  const std::uint64_t hash = hash_of(name);
  const std::uint32_t tag = tag_of(hash);
  const std::size_t mask = hashes_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    if (hashes_[i] == kFree) return i;
    if (hashes_[i] == tag && *owners_[i] == name) return i;
  }
}

void NameSet::insert(const std::string& name) {
  if (used_ * 4 >= hashes_.size() * 3) grow();
  const std::size_t slot = slot_of(name);
  HLOOM_DCHECK(owners_[slot] == nullptr);
  hashes_[slot] = tag_of(hash_of(name));
  owners_[slot] = &name;
  ++used_;
}

void NameSet::erase(const std::string& name) {
  if (hashes_.empty()) return;
  const std::size_t slot = slot_of(name);
  if (owners_[slot] == nullptr) return;
  hashes_[slot] = kErased;
  owners_[slot] = nullptr;
  ++erased_;
}

// Doubles, unless erased slots are many: then it only clears them.
void NameSet::grow() {
  const std::size_t live = used_ - erased_;
  const std::size_t size = hashes_.size();
  std::vector<const std::string*> old(size == 0 ? 16 : live * 2 < size ? size : size * 2);
  old.swap(owners_);
  hashes_.assign(owners_.size(), kFree);
  used_ = live;
  erased_ = 0;
  for (const std::string* name : old) {
    if (name == nullptr) continue;
    const std::size_t slot = slot_of(*name);
    hashes_[slot] = tag_of(hash_of(*name));
    owners_[slot] = name;
  }
}

}  // namespace hloom::hlo
