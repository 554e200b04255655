#include "runtime/memory_limit.h"

#include <algorithm>
#include <charconv>

#include "runtime/control_groups.h"

namespace hloom::runtime {

std::int64_t cgroup_memory_bytes(const std::string& root, std::string_view membership) {
  constexpr std::int64_t kNone = std::int64_t{1} << 60;  // version 1 writes a larger number for none
  std::int64_t least = kNone;
  for (const GroupFolder& group : group_folders(root, membership, "memory")) {
    const std::string text = contents(group.path + (group.version2 ? "/memory.max" : "/memory.limit_in_bytes"));
    std::int64_t bytes = 0;
    std::from_chars(text.data(), text.data() + text.size(), bytes);  // "max" is no number
    if (bytes > 0) least = std::min(least, bytes);
  }
  return least == kNone ? 0 : least;
}

std::int64_t memory_limit_bytes() {
  static const std::int64_t bytes = cgroup_memory_bytes("/sys/fs/cgroup", contents("/proc/self/cgroup"));
  return bytes;
}

}  // namespace hloom::runtime
