#include "runtime/commit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "runtime/pages.h"

namespace hloom::runtime {
namespace {

class Groups : public testing::Test {
 protected:
  Groups() : root_(testing::TempDir() + "hloom_memory_" + std::to_string(getpid())) {}
  ~Groups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::string root_;
};

TEST_F(Groups, NoLimitIsTheLargestNumber) {
  EXPECT_EQ(cgroup_bytes_left(root_, "0::/a\n"), kNone);
  write("/a/memory.max", "max\n");
  write("/a/memory.current", "1000\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "0::/a\n"), kNone);
  write("/memory/b/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "3:memory:/b\n"), kNone);
}

TEST_F(Groups, TheLeastOnTheWayUpCounts) {
  write("/a/memory.max", "5000\n");
  write("/a/memory.current", "1000\n");
  write("/a/b/memory.max", "100000\n");
  write("/a/b/memory.current", "900\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "0::/a/b\n"), 4000);
  write("/a/b/memory.max", "1000\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "0::/a/b\n"), 100);
  write("/a/b/memory.stat", "anon 800\ninactive_file 30\nslab 2\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "0::/a/b\n"), 130);
  write("/a/b/memory.max", "10\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "0::/a/b\n"), 0);
}

TEST_F(Groups, Version1) {
  write("/memory/b/memory.limit_in_bytes", "5000\n");
  write("/memory/b/memory.usage_in_bytes", "4000\n");
  write("/memory/b/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  EXPECT_EQ(cgroup_bytes_left(root_, "4:cpu:/c\n3:memory:/b\n"), 1500);
}

TEST(Commit, ThisMachineHasSomeMemory) { EXPECT_GT(available_bytes(), 1 << 20); }

TEST(Commit, MakesPagesBeThereAndKeepsTheirContent) {
  const Pages pages = *Pages::map(3 << 20);
  const std::span<std::byte> all(pages.data(), 3 << 20);
  EXPECT_EQ(absent_bytes(all), 3 << 20);
  all[5000] = std::byte{7};
  EXPECT_TRUE(populate(all.subspan(1 << 20, 1)));
  EXPECT_EQ(absent_bytes(all), (3 << 20) - 2 * sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(commit(all));
  EXPECT_EQ(absent_bytes(all), 0);
  EXPECT_EQ(all[5000], std::byte{7});
  EXPECT_TRUE(commit({}));
}

TEST(Commit, MoreThanThereIsIsAnErrorAtOnce) {
  const Expected<Pages> pages = Pages::map(std::int64_t{1} << 44);
  if (!pages) GTEST_SKIP() << "the system does not map more than it has";
  const Expected<> done = commit({pages->data(), std::size_t{1} << 44});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::ResourceExhausted);
}

}  // namespace
}  // namespace hloom::runtime
