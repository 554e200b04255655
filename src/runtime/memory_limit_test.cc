#include "runtime/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hloom::runtime {
namespace {

TEST(MemoryLimit, IsTheLeastOnTheWayUp) {
  const std::string root = testing::TempDir() + "hloom_memory_limit_" + std::to_string(getpid());
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = root + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  EXPECT_EQ(cgroup_memory_bytes(root, "0::/a\n"), 0);
  write("memory.max", "max\n");
  EXPECT_EQ(cgroup_memory_bytes(root, "0::/a\n"), 0);
  write("a/b/memory.max", "8589934592\n");
  EXPECT_EQ(cgroup_memory_bytes(root, "0::/a/b\n"), std::int64_t{8} << 30);
  write("a/memory.max", "1000\n");
  EXPECT_EQ(cgroup_memory_bytes(root, "0::/a/b\n"), 1000);
  write("memory/x/memory.limit_in_bytes", "500\n");
  EXPECT_EQ(cgroup_memory_bytes(root, "7:memory:/x\n0::/a\n"), 500);
  write("memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_memory_bytes(root, "7:memory:/x\n"), 0);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace hloom::runtime
