// How much memory the control groups let this process have in all.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/control_groups.h"

namespace hloom::runtime {

inline constexpr std::int64_t kNoMemoryLimit = std::numeric_limits<std::int64_t>::max();

/// The memory limit in bytes of one group by itself, or kNoMemoryLimit.
std::int64_t memory_limit_bytes(const GroupFolder&);

/// The least memory limit in bytes of the group that `membership` (the text of /proc/self/cgroup) names and of all
/// groups above it, version 2 or 1, whose files are under `root` ("/sys/fs/cgroup"); 0 if there is none.
std::int64_t cgroup_memory_bytes(const std::string& root, std::string_view membership);

/// That of this process. Read at the first call.
std::int64_t memory_limit_bytes();

}  // namespace hloom::runtime
