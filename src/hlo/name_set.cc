#include "hlo/name_set.h"

#include <cstring>

namespace hloom::hlo {

std::uint32_t hash_name(std::string_view name) {
  if (name.empty()) return 0;
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;
  const auto last = static_cast<unsigned char>(name.back());
  std::uint64_t h = (name.size() * 64 + (last >> 2)) * kOdd;
  const char* p = name.data();
  std::size_t left = name.size() - 1;
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t chunk = 0;
    std::memcpy(&chunk, p, 8);
    h = (h ^ chunk) * kOdd;
    h ^= h >> 32;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, p, left);
  h = (h ^ rest) * kOdd;
  h = (h ^ h >> 32) * kOdd;
  return static_cast<std::uint32_t>(h >> 32) << 2 | (last & 3);
}

namespace {

// Never one of the two marks.
std::uint32_t stored(std::uint32_t hash) { return hash < 2 ? hash + 2 : hash; }

}  // namespace

// The slot of the name, or the first free one on its way, which has no owner.
std::size_t NameSet::slot_of(std::string_view name) const {
  const std::uint32_t hash = stored(hash_name(name));
  const std::size_t mask = hashes_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask)
    if (hashes_[i] == kFree || (hashes_[i] == hash && *owners_[i] == name)) return i;
}

// Needs: not there.
void NameSet::put(std::uint32_t hash, const std::string* owner) {
  const std::size_t mask = hashes_.size() - 1;
  std::size_t i = hash & mask;
  while (hashes_[i] != kFree) i = (i + 1) & mask;
  hashes_[i] = hash;
  owners_[i] = owner;
}

bool NameSet::insert(const std::string& name) {
  if (used_ * 4 >= hashes_.size() * 3) grow();
  const std::size_t slot = slot_of(name);
  if (owners_[slot] != nullptr) return false;
  hashes_[slot] = stored(hash_name(name));
  owners_[slot] = &name;
  ++used_;
  return true;
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
  const std::size_t live = used_ - erased_, size = hashes_.size();
  const std::size_t wanted = size == 0 ? 16 : live * 2 < size ? size : size * 2;
  std::vector<std::uint32_t> hashes(wanted, kFree);
  std::vector<const std::string*> owners(wanted);
  hashes.swap(hashes_);
  owners.swap(owners_);
  for (std::size_t i = 0; i < size; ++i)
    if (owners[i] != nullptr) put(hashes[i], owners[i]);
  used_ = live;
  erased_ = 0;
}

}  // namespace hloom::hlo
