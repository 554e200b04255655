#include "jit/memory_cache.h"

#include <cstring>

namespace hloom::jit {
namespace {

std::int64_t bytes_of(const Object& object) { return static_cast<std::int64_t>(object.bytes.size()); }

}  // namespace

std::size_t MemoryCache::Hash::operator()(const ObjectKey& key) const {
  std::size_t result;
  std::memcpy(&result, key.data(), sizeof(result));
  return result;
}

// Never destroyed: programs may be compiled while the process ends.
MemoryCache& MemoryCache::process() {
  static MemoryCache& cache = *new MemoryCache(std::int64_t{64} << 20);
  return cache;
}

std::shared_ptr<const Object> MemoryCache::find(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) {
    ++statistics_.misses;
    return nullptr;
  }
  ++statistics_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void MemoryCache::insert(const ObjectKey& key, std::shared_ptr<const Object> object) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(key)) return;
  statistics_.bytes += bytes_of(*object);
  entries_.emplace_front(key, std::move(object));
  places_.emplace(key, entries_.begin());
  while (statistics_.bytes > limit_bytes_) {
    statistics_.bytes -= bytes_of(*entries_.back().second);
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

void MemoryCache::clear() {
  const std::lock_guard lock(mutex_);
  places_.clear();
  entries_.clear();
  statistics_ = {};
}

MemoryCache::Statistics MemoryCache::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics result = statistics_;
  result.objects = static_cast<std::int64_t>(entries_.size());
  return result;
}

}  // namespace hloom::jit
