// How many threads this process should use.
#pragma once

#include <string>
#include <string_view>

namespace hloom::runtime {

/// Processors that the affinity mask and the control groups' quota leave, at least 1. Found at the first call.
int available_cpus();

/// Processors of the calling thread's affinity mask.
int affinity_cpus();

/// The quota in whole processors of the group that `membership` (the text of /proc/self/cgroup) names and of all groups
/// above it, version 2 or 1, whose files are under `root` ("/sys/fs/cgroup"); 0 if there is none. A quota of 1.5 is 1:
/// the threads of a parallel loop wait for one another, and one that is throttled holds up all.
int cgroup_cpus(const std::string& root, std::string_view membership);

}  // namespace hloom::runtime
