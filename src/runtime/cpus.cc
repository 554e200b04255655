#include "runtime/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "runtime/control_groups.h"

namespace hloom::runtime {
namespace {

// The smaller of two quotas of which 0 is none.
int smaller(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

int whole_cpus(double quota_us, double period_us) {
  if (!(quota_us > 0) || !(period_us > 0)) return 0;
  return std::max(1, static_cast<int>(std::min(quota_us / period_us, 1e6)));
}

// Version 2: "max 100000" or "150000 100000".
int quota_v2(const std::string& folder) {
  std::istringstream text(contents(folder + "/cpu.max"));
  double quota_us = 0, period_us = 0;
  return text >> quota_us >> period_us ? whole_cpus(quota_us, period_us) : 0;
}

// Version 1: two files, the first of them -1 without quota.
int quota_v1(const std::string& folder) {
  const double quota_us = std::atof(contents(folder + "/cpu.cfs_quota_us").c_str());
  return whole_cpus(quota_us, std::atof(contents(folder + "/cpu.cfs_period_us").c_str()));
}

}  // namespace

int affinity_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));  // more processors than the set holds
}

int cgroup_cpus(const std::string& root, std::string_view membership) {
  int result = 0;
  for (const GroupFolder& group : group_folders(root, membership, "cpu"))
    result = smaller(result, group.version2 ? quota_v2(group.path) : quota_v1(group.path));
  return result;
}

int available_cpus() {
  static const int cpus =
      std::max(1, smaller(affinity_cpus(), cgroup_cpus("/sys/fs/cgroup", contents("/proc/self/cgroup"))));
  return cpus;
}

}  // namespace hloom::runtime
