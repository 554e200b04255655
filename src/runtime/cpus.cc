#include "runtime/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace hloom::runtime {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

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

// The least quota from the group up to the root. In a container the group's path may be that of the host, and its
// files those of the root, so a path that does not exist does no harm.
int least_quota(const std::string& root, std::string path, int (*quota)(const std::string&)) {
  int result = quota(root);
  while (!path.empty() && path != "/") {
    result = smaller(result, quota(root + path));
    path.resize(path.find_last_of('/'));
  }
  return result;
}

bool names_cpu(std::string_view controllers) {
  const std::string with_commas = "," + std::string(controllers) + ",";
  return with_commas.find(",cpu,") != std::string::npos;
}

int affinity_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));  // more processors than the set holds
}

}  // namespace

int cgroup_cpus(const std::string& root, std::string_view membership) {
  int result = 0;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/group", or "0::/group" for version 2
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) result = smaller(result, least_quota(root, path, quota_v2));
    if (names_cpu(controllers)) {
      result = smaller(result, least_quota(root + "/cpu", path, quota_v1));
      result = smaller(result, least_quota(root + "/cpu,cpuacct", path, quota_v1));
    }
  }
  return result;
}

int available_cpus() {
  static const int cpus =
      std::max(1, smaller(affinity_cpus(), cgroup_cpus("/sys/fs/cgroup", contents("/proc/self/cgroup"))));
  return cpus;
}

}  // namespace hloom::runtime
