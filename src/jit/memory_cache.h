// Objects of this process's programs, so that equal kernels are compiled once.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "jit/object.h"
#include "jit/object_key.h"

namespace hloom::jit {

/// Keeps what was asked for last, up to a number of bytes. Any thread may call.
class MemoryCache {
 public:
  struct Statistics {
    std::int64_t objects = 0, bytes = 0;  ///< now kept
    std::int64_t hits = 0, misses = 0;
  };

  explicit MemoryCache(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  /// That of the process, of 64 MiB.
  static MemoryCache& process();

  /// Null if there is none.
  std::shared_ptr<const Object> find(const ObjectKey&);
  /// Drops those not asked for the longest while there are too many bytes. One that is too large alone is not kept.
  void insert(const ObjectKey&, std::shared_ptr<const Object>);
  void clear();
  Statistics statistics() const;

 private:
  struct Hash {
    std::size_t operator()(const ObjectKey&) const;
  };
  using Entries = std::list<std::pair<ObjectKey, std::shared_ptr<const Object>>>;

  const std::int64_t limit_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  ///< asked for last: first
  std::unordered_map<ObjectKey, Entries::iterator, Hash> places_;
  Statistics statistics_;
};

}  // namespace hloom::jit
