#include "runtime/cpus.h"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hloom::runtime {
namespace {

class Cpus : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ = testing::TempDir() + "hloom_cgroup_" + std::to_string(getpid());
};

TEST_F(Cpus, NoQuotaIsZero) {
  EXPECT_EQ(cgroup_cpus(root_, ""), 0);
  EXPECT_EQ(cgroup_cpus(root_, "0::/\n"), 0);
  write("cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpus(root_, "0::/\n"), 0);
  write("cpu/a/cpu.cfs_quota_us", "-1\n");
  write("cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_, "3:cpu,cpuacct:/a\n"), 0);
}

TEST_F(Cpus, Version2TakesTheLeastOnTheWayUp) {
  write("a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_, "0::/a/b\n"), 8);
  write("a/cpu.max", "350000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_, "0::/a/b\n"), 3);
  EXPECT_EQ(cgroup_cpus(root_, "0::/other/group\n"), 0);
  write("cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_, "0::/other/group\n"), 1);
}

TEST_F(Cpus, Version1) {
  write("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "400000\n");
  write("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_, "5:memory:/docker/x\n4:cpuacct,cpu:/docker/x\n"), 4);
  EXPECT_EQ(cgroup_cpus(root_, "5:memory:/docker/x\n"), 0);
}

TEST_F(Cpus, JunkIsNoQuota) {
  write("a/cpu.max", "many of them\n");
  EXPECT_EQ(cgroup_cpus(root_, "0::/a\nnonsense\n::\n0:\n0::relative\n"), 0);
  write("a/cpu.max", "100 0\n");
  EXPECT_EQ(cgroup_cpus(root_, "0::/a\n"), 0);
}

TEST_F(Cpus, AffinityCounts) {
  std::thread([] {
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    EXPECT_EQ(affinity_cpus(), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int cpu = CPU_SETSIZE; CPU_COUNT(&one) == 0 && cpu-- > 0;)
      if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);  // of this thread alone
    EXPECT_EQ(affinity_cpus(), 1);
  }).join();
}

TEST_F(Cpus, ThisProcessHasAtLeastOne) { EXPECT_GE(available_cpus(), 1); }

}  // namespace
}  // namespace hloom::runtime
