#include "runtime/memory_limit.h"

#include <algorithm>
#include <charconv>

namespace hloom::runtime {

std::int64_t memory_limit_bytes(const GroupFolder& group) {
  const std::string text = contents(group.path + (group.version2 ? "/memory.max" : "/memory.limit_in_bytes"));
  std::int64_t bytes = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  // Version 2 writes "max" for none, version 1 a number that is as good as none.
  return problem == std::errc() && bytes < kNoMemoryLimit / 2 ? bytes : kNoMemoryLimit;
}

std::int64_t cgroup_memory_bytes(const std::string& root, std::string_view membership) {
  std::int64_t least = kNoMemoryLimit;
  for (const GroupFolder& group : group_folders(root, membership, "memory")) least = std::min(least, memory_limit_bytes(group));
  return least == kNoMemoryLimit ? 0 : least;
}

std::int64_t memory_limit_bytes() {
  static const std::int64_t bytes = cgroup_memory_bytes("/sys/fs/cgroup", contents("/proc/self/cgroup"));
  return bytes;
}

}  // namespace hloom::runtime
