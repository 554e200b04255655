// Objects and large constants in a folder, for later processes.
//
//   auto cache = TRY(jit::DiskCache::open(folder));
//   if (auto object = cache->load(key)) return *object;
//   cache->store(key, object, target);
//   cache->trim();
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"
#include "hloom/error.h"
#include "jit/mapped_file.h"
#include "jit/object.h"
#include "jit/object_key.h"

struct stat;

namespace hloom::jit {

/// A folder with a file for each key. Any threads of any processes may use it at once: a file appears whole or not at
/// all. What is damaged, or is no file of this user alone, is as absent; what happened is told by problems().
class DiskCache {
 public:
  static constexpr std::int64_t kDefaultLimitBytes = std::int64_t{256} << 20;

  struct Statistics {
    std::int64_t hits = 0, misses = 0, stored = 0;
  };

  /// Makes the folder, for this user alone, where there is none.
  /// Errors: PermissionDenied if it is a symbolic link, is not this user's, or others may write there; NotFound,
  ///         PermissionDenied, ResourceExhausted, naming the folder, if it cannot be made or written.
  static Expected<std::shared_ptr<DiskCache>> open(const std::string& folder,
                                                   std::int64_t limit_bytes = kDefaultLimitBytes);
  DiskCache(const DiskCache&) = delete;
  ~DiskCache();

  /// The object of a key that runs on this machine, or nothing.
  std::optional<Object> load(const ObjectKey&);
  /// Writes it, if the disk lets it. `target` is what the object needs.
  void store(const ObjectKey&, const Object&, const base::Target& target);
  /// The same bytes from a file of the folder, which is written where there is none: memory that all processes share, and
  /// that the system can take back. Nothing if the disk does not let it, or they are more than half of the limit.
  /// Cost: reads the bytes twice.
  std::shared_ptr<const MappedFile> map(std::span<const std::byte> bytes);
  /// Removes files not used for the longest until nine tenths of the limit are left, if there are more than the limit.
  /// Another process may be at it: then nothing. Cost: a system call for each file.
  void trim();

  Statistics statistics() const;
  /// What went wrong, a line each; at most ten.
  std::vector<std::string> problems() const;

 private:
  DiskCache(int descriptor, std::string folder, std::int64_t limit_bytes)
      : folder_(std::move(folder)), descriptor_(descriptor), limit_bytes_(limit_bytes) {}
  void note(const std::string& problem);
  Expected<int> open_file(const std::string& name, struct stat& status);
  Expected<std::string> read(const std::string& name);
  Expected<> write(const std::string& name, std::string_view bytes);

  const std::string folder_;
  const int descriptor_;  ///< of the folder: what is checked once cannot be exchanged
  const std::int64_t limit_bytes_;
  mutable std::mutex mutex_;
  Statistics statistics_;
  std::vector<std::string> problems_;
};

/// $XDG_CACHE_HOME/hloom, or ~/.cache/hloom; empty if the environment has neither.
std::string default_cache_folder();

}  // namespace hloom::jit
