#include "jit/disk_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "jit/cache_entry.h"
#include "jit/target.h"

namespace hloom::jit {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ObjectKey key(int number) { return digest(std::to_string(number)); }

Object object(int number, std::size_t bytes = 300) {
  Object result{"cached", std::vector<char>(bytes)};
  for (std::size_t i = 0; i < bytes; ++i) result.bytes[i] = static_cast<char>(i * 7 + static_cast<std::size_t>(number));
  return result;
}

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hloom-cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    parent_ = pattern;
    folder_ = parent_ + "/a/b";
  }
  void TearDown() override { fs::remove_all(parent_); }

  std::shared_ptr<DiskCache> open(std::int64_t limit = DiskCache::kDefaultLimitBytes) {
    auto cache = DiskCache::open(folder_, limit);
    EXPECT_TRUE(cache) << cache.error().message();
    return *cache;
  }
  std::string refusal() {
    const auto cache = DiskCache::open(folder_);
    EXPECT_FALSE(cache);
    return cache ? "" : std::string(cache.error().message());
  }
  std::string path(const ObjectKey& k) { return folder_ + "/" + to_hex(k) + ".o.hloom"; }
  std::string contents(const ObjectKey& k) {
    std::ifstream file(path(k), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void overwrite(const ObjectKey& k, const std::string& bytes) {
    std::ofstream(path(k), std::ios::binary) << bytes;
  }
  std::size_t num_files() { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  std::string parent_, folder_;
};

std::vector<std::byte> numbers(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  return bytes;
}

TEST_F(DiskCacheTest, WhatIsMappedOnceIsTheFileOfAllWhoMapIt) {
  const auto bytes = numbers(100'000);
  const auto cache = open();
  const auto first = cache->map(bytes), again = open()->map(bytes);
  ASSERT_TRUE(first && again) << testing::PrintToString(cache->problems());
  EXPECT_TRUE(std::ranges::equal(first->bytes(), bytes) && std::ranges::equal(again->bytes(), bytes));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first->bytes().data()) % 4096, 0u);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  EXPECT_EQ(fs::file_size(*fs::directory_iterator(folder_)), bytes.size());
  // It stays when the file goes, and comes anew.
  fs::remove(*fs::directory_iterator(folder_));
  EXPECT_TRUE(std::ranges::equal(first->bytes(), bytes));
  EXPECT_TRUE(cache->map(bytes));
}

TEST_F(DiskCacheTest, ADamagedMappedFileIsWrittenAnew) {
  const auto bytes = numbers(100'000);
  const auto cache = open();
  ASSERT_TRUE(cache->map(bytes));
  const std::string file = fs::directory_iterator(folder_)->path();
  for (const std::size_t size : {0, 17, 99'999, 100'000, 100'001}) {
    std::ofstream(file, std::ios::binary) << std::string(size, 'x');
    const auto mapped = cache->map(bytes);
    ASSERT_TRUE(mapped) << size;
    EXPECT_TRUE(std::ranges::equal(mapped->bytes(), bytes)) << size;
  }
  EXPECT_EQ(cache->problems().size(), 5u);
  EXPECT_THAT(cache->problems()[0], HasSubstr("is damaged"));
}

TEST_F(DiskCacheTest, NothingIsMappedWhereTheDiskDoesNotLetIt) {
  const auto bytes = numbers(100'000);
  EXPECT_FALSE(open(150'000)->map(bytes)) << "more than half of the limit";
  const auto cache = open();
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY}, small{50'000, RLIM_INFINITY};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto mapped = cache->map(bytes);
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_FALSE(mapped);
  EXPECT_THAT(cache->problems(), ElementsAre(HasSubstr("cannot be written")));
  EXPECT_TRUE(fs::is_empty(folder_)) << "nothing half done is left";
}

TEST_F(DiskCacheTest, HitsInTheNextProcess) {
  const auto cache = open();
  EXPECT_FALSE(cache->load(key(1)));
  cache->store(key(1), object(1), host_target());
  const auto again = open();
  const auto found = again->load(key(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, object(1).bytes);
  EXPECT_FALSE(again->load(key(2)));
  EXPECT_EQ(again->statistics().hits, 1);
  EXPECT_EQ(again->statistics().misses, 1);
  EXPECT_THAT(again->problems(), IsEmpty());
  EXPECT_EQ(num_files(), 1u) << "nothing is left behind";
}

TEST_F(DiskCacheTest, IsForItsUserAlone) {
  const mode_t mask = umask(0);
  const auto cache = open();
  cache->store(key(1), object(1), host_target());
  umask(mask);
  struct stat status{};
  ASSERT_EQ(stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(path(key(1)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(DiskCacheTest, RefusesFoldersThatOthersCouldWrite) {
  open();
  for (const mode_t mode : {0720, 0702, 0777}) {
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    EXPECT_EQ(refusal(), folder_ + ": others may write there");
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  open();
  if (geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  ASSERT_EQ(chown(folder_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(refusal(), folder_ + ": belongs to another user");
}

TEST_F(DiskCacheTest, RefusesLinksAndWhatIsNoFolder) {
  fs::create_directories(parent_ + "/elsewhere");
  fs::create_directories(parent_ + "/a");
  fs::create_directory_symlink(parent_ + "/elsewhere", folder_);
  EXPECT_EQ(refusal(), folder_ + ": is a symbolic link");
  EXPECT_FALSE(DiskCache::open(folder_ + "/")) << "behind a slash it would be followed";
  fs::remove(folder_);
  std::ofstream(folder_) << "a file";
  EXPECT_THAT(refusal(), HasSubstr("Not a directory"));
  EXPECT_THAT(std::string(DiskCache::open("/proc/hloom/cache").error().message()), HasSubstr("/proc/hloom/cache: cannot"));
}

TEST_F(DiskCacheTest, AnEntryCutAnywhereIsAsAbsent) {
  const auto cache = open();
  cache->store(key(1), object(1), host_target());
  const std::string whole = contents(key(1));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    overwrite(key(1), whole.substr(0, length));
    ASSERT_FALSE(cache->load(key(1))) << length;
  }
  overwrite(key(1), whole + "x");
  EXPECT_FALSE(cache->load(key(1)));
  EXPECT_THAT(cache->problems()[0], HasSubstr("is damaged"));
  cache->store(key(1), object(1), host_target());
  EXPECT_TRUE(cache->load(key(1))) << "it is written anew";
}

TEST_F(DiskCacheTest, AnEntryWithAWrongBitAnywhereIsAsAbsent) {
  const auto cache = open();
  cache->store(key(1), object(1), host_target());
  const std::string whole = contents(key(1));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string wrong = whole;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(read_entry(key(1), wrong)) << bit;
  }
  EXPECT_TRUE(read_entry(key(1), whole));
}

TEST_F(DiskCacheTest, AnEntryUnderAnotherNameIsAsAbsent) {
  const auto cache = open();
  cache->store(key(1), object(1), host_target());
  fs::rename(path(key(1)), path(key(2)));
  EXPECT_FALSE(cache->load(key(2)));
  fs::create_symlink(path(key(2)), path(key(3)));
  EXPECT_FALSE(cache->load(key(3)));
  fs::create_directory(path(key(4)));
  EXPECT_FALSE(cache->load(key(4)));
  ASSERT_EQ(mkfifo(path(key(5)).c_str(), 0600), 0);
  EXPECT_FALSE(cache->load(key(5))) << "and it does not wait for a writer";
}

TEST_F(DiskCacheTest, CodeForAnotherProcessorNamesWhatIsMissing) {
  const auto cache = open();
  overwrite(key(1), write_entry(key(1), "no-such-feature,sse2,warp-drive", object(1)));
  EXPECT_FALSE(cache->load(key(1)));
  EXPECT_THAT(cache->problems(), ElementsAre(HasSubstr("needs no-such-feature, ")));
  EXPECT_THAT(cache->problems()[0], HasSubstr("warp-drive, which this machine lacks"));
  EXPECT_TRUE(fs::exists(path(key(1)))) << "another machine may have it";
  EXPECT_THAT(*required_features(host_target()), testing::Not(IsEmpty()));
  EXPECT_EQ(missing_features(*required_features(host_target())), "");
}

TEST_F(DiskCacheTest, TheOldestGoFirst) {
  const std::int64_t each = static_cast<std::int64_t>(write_entry(key(0), *required_features(host_target()), object(0)).size());
  const auto cache = open(10 * each);
  const auto age = [&](int number, int seconds) {
    fs::last_write_time(path(key(number)), fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  for (int i = 0; i < 20; ++i) {
    cache->store(key(i), object(i), host_target());
    age(i, 100 - i);
  }
  std::ofstream(folder_ + "/.tmp-1-2-3") << "left by a process that ended";
  fs::last_write_time(folder_ + "/.tmp-1-2-3", fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::ofstream(folder_ + "/.tmp-1-2-4") << "of one that writes";
  std::ofstream(folder_ + "/notes.txt") << "not ours";
  EXPECT_TRUE(cache->load(key(3))) << "which is now the youngest";
  cache->trim();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(fs::exists(path(key(i))), i == 3 || i >= 12) << i;
  EXPECT_FALSE(fs::exists(folder_ + "/.tmp-1-2-3"));
  EXPECT_TRUE(fs::exists(folder_ + "/.tmp-1-2-4"));
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt"));
  const std::size_t files = num_files();
  cache->trim();
  EXPECT_EQ(num_files(), files) << "there is room";
}

// A reader sees an entry whole or not at all, whoever writes, replaces and removes.
TEST_F(DiskCacheTest, ProcessesDoNotDisturbEachOther) {
  open();
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto cache = *DiskCache::open(folder_, child == 0 ? 2000 : DiskCache::kDefaultLimitBytes);
      bool good = true;
      for (int i = 0; i < 400; ++i) {
        const int number = i % 5;
        if (const auto found = cache->load(key(number))) good = good && found->bytes == object(number, 3000).bytes;
        cache->store(key(number), object(number, 3000), host_target());
        if (i % 10 == 0) cache->trim();
      }
      _exit(good && cache->problems().empty() ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(DiskCacheTest, AFullDiskIsToldAndLeavesNothing) {
  open();
  const pid_t pid = fork();
  if (pid == 0) {
    const auto cache = *DiskCache::open(folder_);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    cache->store(key(1), object(1), host_target());
    const bool told = cache->problems().size() == 1 && cache->problems()[0].find("cannot be written") != std::string::npos;
    _exit(told && !cache->load(key(1)) && cache->statistics().stored == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(num_files(), 0u);
}

TEST(DefaultCacheFolder, IsWhereTheUsersCachesAre) {
  const auto with = [](const char* cache, const char* home) {
    cache != nullptr ? setenv("XDG_CACHE_HOME", cache, 1) : unsetenv("XDG_CACHE_HOME");
    home != nullptr ? setenv("HOME", home, 1) : unsetenv("HOME");
    return default_cache_folder();
  };
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const std::string old_cache = cache == nullptr ? "" : cache, old_home = home == nullptr ? "" : home;
  EXPECT_EQ(with("/c", "/h"), "/c/hloom");
  EXPECT_EQ(with(nullptr, "/h"), "/h/.cache/hloom");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/hloom");
  EXPECT_EQ(with(nullptr, nullptr), "");
  with(old_cache.empty() ? nullptr : old_cache.c_str(), old_home.empty() ? nullptr : old_home.c_str());
}

}  // namespace
}  // namespace hloom::jit
