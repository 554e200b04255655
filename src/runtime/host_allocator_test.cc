#include "hloom/host_allocator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "runtime/allocations_test.h"
#include "runtime/commit.h"
#include "runtime/size_bins.h"

namespace hloom {
namespace {

std::uintptr_t address(const HostBuffer& buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data()); }

// Hooks that record their calls, and fail when told to.
struct Hooks {
  std::mutex mutex;
  std::map<std::byte*, std::pair<std::optional<int>, std::int64_t>> mapped;
  int maps = 0, unmaps = 0;
  bool fail_map = false, fail_unmap = false;
  std::string log;

  HostAllocator::Options options() {
    HostAllocator::Options result;
    result.map = [this](std::optional<int> device, std::byte* chunk, std::int64_t size) -> Expected<> {
      const std::lock_guard<std::mutex> lock(mutex);
      ++maps;
      if (fail_map) return fail(Code::Unavailable, "device is gone");
      EXPECT_TRUE(mapped.emplace(chunk, std::pair(device, size)).second);
      return {};
    };
    result.unmap = [this](std::optional<int> device, std::byte* chunk) -> Expected<> {
      const std::lock_guard<std::mutex> lock(mutex);
      ++unmaps;
      EXPECT_EQ(mapped.count(chunk), 1u);
      EXPECT_EQ(mapped[chunk].first, device);
      mapped.erase(chunk);
      std::memset(chunk, 1, 1);  // still there
      if (fail_unmap) return fail(Code::Unavailable, "cannot");
      return {};
    };
    result.log = [this](const std::string& message) { log += message; };
    return result;
  }
};

TEST(HostAllocator, SizesAndAlignments) {
  HostAllocator allocator;
  std::set<std::byte*> seen;
  std::vector<HostBuffer> kept;
  for (std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{63}, std::int64_t{64}, std::int64_t{65},
                            std::int64_t{5} << 20, std::int64_t{1} << 30})
    for (std::int64_t alignment = 1; alignment <= 16 << 20; alignment *= 2) {
      HostBuffer buffer = *allocator.allocate({.size_bytes = size, .alignment = alignment});
      ASSERT_NE(buffer.data(), nullptr);
      EXPECT_EQ(address(buffer) % static_cast<std::uintptr_t>(std::max<std::int64_t>(alignment, 64)), 0u);
      EXPECT_EQ(buffer.size_bytes(), size);
      if (size > 0) buffer.data()[0] = buffer.data()[size - 1] = std::byte{1};
      if (size > 1 << 20) continue;
      EXPECT_TRUE(seen.insert(buffer.data()).second);
      kept.push_back(std::move(buffer));
    }
}

TEST(HostAllocator, WrongRequestsAreErrors) {
  HostAllocator allocator;
  for (const HostAllocator::Request& bad : std::vector<HostAllocator::Request>{
           {.size_bytes = -1}, {.size_bytes = INT64_MAX}, {.size_bytes = INT64_MAX - 63}, {.size_bytes = 1, .alignment = 0},
           {.size_bytes = 1, .alignment = 3}, {.size_bytes = 1, .alignment = -64}, {.size_bytes = 1, .alignment = INT64_MIN}}) {
    Expected<HostBuffer> buffer = allocator.allocate(bad);
    ASSERT_FALSE(buffer);
    EXPECT_EQ(buffer.error().code(), Code::InvalidArgument);
  }
  Expected<HostBuffer> much = allocator.allocate(std::int64_t{1} << 54);
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().code(), Code::ResourceExhausted);
  EXPECT_EQ(allocator.statistics().num_chunks, 0);
  HostAllocator odd({.min_alignment = 48});
  EXPECT_FALSE(odd.allocate(1));
}

TEST(HostAllocator, MinimumAlignmentHolds) {
  HostAllocator allocator({.min_alignment = 4096});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(address(*allocator.allocate(1)) % 4096, 0u);
}

TEST(HostAllocator, HooksRunOncePerChunkWithTheDevice) {
  Hooks hooks;
  {
    HostAllocator allocator(hooks.options());
    std::vector<HostBuffer> buffers;
    for (int i = 0; i < 100; ++i) buffers.push_back(*allocator.allocate({.size_bytes = 1000, .device = 3}));
    EXPECT_EQ(hooks.maps, 1);
    EXPECT_EQ(hooks.mapped.begin()->second.first, 3);
    EXPECT_GE(address(buffers[0]), reinterpret_cast<std::uintptr_t>(hooks.mapped.begin()->first));
    buffers.push_back(*allocator.allocate({.size_bytes = 1000}));
    EXPECT_EQ(hooks.maps, 2);  // another device's memory is apart
    buffers.push_back(*allocator.allocate({.size_bytes = 64 << 20, .device = 3}));
    EXPECT_EQ(hooks.maps, 3);
    buffers.clear();
    EXPECT_EQ(hooks.unmaps, 0);
  }
  EXPECT_EQ(hooks.unmaps, 3);
  EXPECT_TRUE(hooks.mapped.empty());
}

TEST(HostAllocator, FailedMapIsToldAndNothingIsKept) {
  Hooks hooks;
  hooks.fail_map = true;
  HostAllocator allocator(hooks.options());
  Expected<HostBuffer> buffer = allocator.allocate(100);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().message(), "device is gone");
  EXPECT_EQ(hooks.unmaps, 0);
  EXPECT_EQ(allocator.statistics().num_chunks, 0);
  hooks.fail_map = false;
  EXPECT_TRUE(allocator.allocate(100));
}

// Whatever fails, and when: a chunk whose map has failed is never unmapped, each other one once, and those that are there
// serve on.
TEST(HostAllocator, AFailureIsOfOneChunk) {
  Hooks hooks;
  {
    HostAllocator allocator(hooks.options());
    const HostBuffer first = *allocator.allocate(100);
    hooks.fail_map = true;
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(allocator.allocate(8 << 20).error().message(), "device is gone");
      EXPECT_EQ(allocator.warm(16 << 20).error().message(), "device is gone");
      EXPECT_EQ(allocator.allocate({.size_bytes = 1, .device = 2}).error().message(), "device is gone");
      EXPECT_TRUE(allocator.allocate(1000));  // in the chunk that is there
    }
    EXPECT_EQ(allocator.statistics().num_chunks, 1);
    EXPECT_EQ(allocator.statistics().num_buffers, 1);
    EXPECT_EQ(allocator.statistics().bytes_in_use, 128);
    EXPECT_EQ(hooks.unmaps, 0);
    hooks.fail_map = false;
    hooks.fail_unmap = true;
    EXPECT_TRUE(allocator.allocate(8 << 20));
    allocator.trim();
    EXPECT_EQ(hooks.unmaps, 1);
    allocator.trim();
    EXPECT_EQ(hooks.unmaps, 1);
  }
  EXPECT_EQ(hooks.unmaps, 2);
  EXPECT_TRUE(hooks.mapped.empty());
}

bool is_mapped(const std::byte* page) {
  unsigned char present = 0;
  return mincore(const_cast<std::byte*>(page), 1, &present) == 0 || errno != ENOMEM;
}

TEST(HostAllocator, TrimmedMemoryIsTheSystemsAgain) {
  HostAllocator allocator;
  HostBuffer kept = *allocator.allocate({.size_bytes = 6 << 20, .alignment = 4096});
  const std::byte* gone = allocator.allocate({.size_bytes = 32 << 20, .alignment = 4096})->data();
  EXPECT_TRUE(is_mapped(gone));
  allocator.trim();
  EXPECT_FALSE(is_mapped(gone));
  EXPECT_TRUE(is_mapped(kept.data()));
  EXPECT_EQ(allocator.statistics().num_chunks, 1);
}

// The flags of the mapping that holds an address.
std::string flags_of(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream text(line);
    if (text >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(HostAllocator, LargeChunksAskForHugePages) {
  HostAllocator allocator;
  const HostBuffer large = *allocator.allocate(16 << 20), small = *allocator.allocate(100);
  const std::string flags = flags_of(large.data());
  if (flags.empty()) GTEST_SKIP() << "the system does not tell";
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
  EXPECT_EQ(address(large) % (2 << 20), 0u);
}

// Against a list of what is there.
TEST(HostAllocator, StatisticsCountWhatIsThere) {
  HostAllocator allocator;
  std::mt19937 random(5);
  std::vector<HostBuffer> buffers(30);
  std::int64_t peak = 0;
  for (int step = 0; step < 3000; ++step) {
    HostBuffer& buffer = buffers[random() % buffers.size()];
    buffer = {};
    if (random() % 3 != 0) buffer = *allocator.allocate(static_cast<std::int64_t>(random() % (random() % 10 == 0 ? 3'000'000 : 9000)));
    std::int64_t bytes = 0, count = 0;
    for (const HostBuffer& b : buffers) {
      count += b.data() != nullptr;
      bytes += b.data() == nullptr ? 0 : std::max<std::int64_t>((b.size_bytes() + 63) / 64 * 64, 64);
    }
    peak = std::max(peak, bytes);
    const HostAllocator::Statistics s = allocator.statistics();
    ASSERT_EQ(s.bytes_in_use, bytes);
    ASSERT_EQ(s.num_buffers, count);
    ASSERT_EQ(s.peak_bytes_in_use, peak);
    ASSERT_GE(s.bytes_cached, 0);
    ASSERT_GE(s.num_chunks, count > 0 ? 1 : 0);
  }
}

TEST(HostAllocator, FailedUnmapIsLoggedAndTheChunkGoes) {
  Hooks hooks;
  hooks.fail_unmap = true;
  HostAllocator allocator(hooks.options());
  ASSERT_TRUE(allocator.allocate(100));
  allocator.trim();
  EXPECT_EQ(hooks.unmaps, 1);
  EXPECT_EQ(hooks.log, "host memory: unmap failed: cannot");
  EXPECT_EQ(allocator.statistics().num_chunks, 0);
}

TEST(HostAllocator, HooksMayUseTheAllocator) {
  HostAllocator* allocator = nullptr;
  HostAllocator::Options options;
  options.map = [&](std::optional<int> device, std::byte*, std::int64_t) -> Expected<> {
    if (device) {
      EXPECT_TRUE(allocator->allocate(100));
    }
    return {};
  };
  options.unmap = [&](std::optional<int>, std::byte*) -> Expected<> {
    EXPECT_GE(allocator->statistics().num_chunks, 0);
    return {};
  };
  HostAllocator made(std::move(options));
  allocator = &made;
  EXPECT_TRUE(made.allocate({.size_bytes = 100, .device = 1}));
  made.trim();
}

TEST(HostAllocator, AnyNodeWillDo) {
  HostAllocator allocator;
  for (int node : {-7, -1, 0, 1, 63, 64, 1023, 1024, INT32_MAX}) {
    HostBuffer buffer = *allocator.allocate({.size_bytes = 100, .numa_node = node});
    std::memset(buffer.data(), 1, 100);
  }
}

TEST(HostAllocator, BuffersOutliveTheAllocatorAndGoOnAnyThread) {
  Hooks hooks;
  HostBuffer kept;
  {
    HostAllocator allocator(hooks.options());
    kept = *allocator.allocate(100);
    HostBuffer moved = *allocator.allocate(5 << 20);
    kept = std::move(moved);
    EXPECT_EQ(moved.data(), nullptr);
    EXPECT_EQ(allocator.statistics().num_buffers, 1);
  }
  EXPECT_EQ(hooks.unmaps, 1);  // of the chunk that is empty
  std::memset(kept.data(), 1, 5 << 20);
  std::thread([buffer = std::move(kept)]() mutable { buffer = {}; }).join();
  EXPECT_EQ(hooks.unmaps, 2);
  EXPECT_TRUE(hooks.mapped.empty());
}

TEST(HostAllocator, MemoryIsUsedAgain) {
  HostAllocator allocator;
  const std::byte* first = allocator.allocate(32 << 20)->data();
  EXPECT_EQ(allocator.statistics().bytes_cached, 32 << 20);
  EXPECT_EQ(allocator.allocate(32 << 20)->data(), first);
  EXPECT_EQ(allocator.allocate(16 << 20)->data(), first);
  EXPECT_EQ(allocator.statistics().num_chunks, 1);
  EXPECT_EQ(allocator.statistics().peak_bytes_in_use, 32 << 20);
  allocator.trim();
  EXPECT_EQ(allocator.statistics().bytes_cached, 0);
}

TEST(HostAllocator, CacheIsBounded) {
  HostAllocator allocator({.max_cached_bytes = 20 << 20});
  std::vector<HostBuffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back(*allocator.allocate(8 << 20));
  buffers.clear();
  EXPECT_LE(allocator.statistics().bytes_cached, 20 << 20);
  EXPECT_GE(allocator.statistics().bytes_cached, 8 << 20);
}

// Every other buffer goes, then the rest: the holes join, and the whole serves one request.
TEST(HostAllocator, HolesJoin) {
  HostAllocator allocator;
  std::vector<HostBuffer> buffers;
  for (int i = 0; i < 1000; ++i) buffers.push_back(*allocator.allocate(4096));
  ASSERT_EQ(allocator.statistics().num_chunks, 1);
  for (std::size_t i = 0; i < buffers.size(); i += 2) buffers[i] = {};
  EXPECT_EQ(allocator.statistics().bytes_in_use, 500 * 4096);
  buffers.clear();
  EXPECT_TRUE(allocator.allocate(4 << 20));
  EXPECT_EQ(allocator.statistics().num_chunks, 1);
}

TEST(HostAllocator, PaddingJoinsToo) {
  HostAllocator allocator;
  {
    const HostBuffer small = *allocator.allocate(64);
    const HostBuffer aligned = *allocator.allocate({.size_bytes = 64, .alignment = 1 << 20});
    EXPECT_EQ(allocator.statistics().num_chunks, 1);
    EXPECT_EQ(allocator.statistics().bytes_in_use + allocator.statistics().bytes_cached, 4 << 20);
  }
  allocator.trim();
  EXPECT_EQ(allocator.statistics().num_chunks, 0);
}

TEST(HostAllocator, FragmentationIsBounded) {
  HostAllocator allocator;
  std::mt19937 random(7);
  std::vector<HostBuffer> buffers(200);
  for (int i = 0; i < 20000; ++i)
    buffers[random() % buffers.size()] = *allocator.allocate(static_cast<std::int64_t>(random() % 100000));
  const HostAllocator::Statistics statistics = allocator.statistics();
  EXPECT_LE(statistics.bytes_in_use + statistics.bytes_cached, 2 * statistics.peak_bytes_in_use + (4 << 20));
}

TEST(HostAllocator, FreedMemoryIsPoisonedWhenAsked) {
  HostAllocator allocator({.poison_freed = true});
  const HostBuffer neighbour = *allocator.allocate(64);
  std::byte* data = nullptr;
  {
    const HostBuffer buffer = *allocator.allocate(64);
    data = buffer.data();
    std::memset(data, 1, 64);
  }
  EXPECT_TRUE(std::all_of(data, data + 64, [](std::byte b) { return b == std::byte{0xdd}; }));
}

TEST(HostAllocator, BinsAreAtMostAQuarterTooLarge) {
  for (std::int64_t size = 1; size <= runtime::SizeBins::kMaxBytes; size += size < 5000 ? 1 : 997) {
    const std::int32_t bin = runtime::SizeBins::bin_of(size);
    const std::int64_t bytes = runtime::SizeBins::bytes_of(bin);
    ASSERT_GE(bytes, size);
    ASSERT_LE(bytes, std::max(size + 63, size + size / 4 + 64));
    ASSERT_EQ(runtime::SizeBins::bin_of(bytes), bin);
    ASSERT_EQ(bytes % 64, 0);
  }
}

TEST(HostAllocator, RepeatedSizesUseNoHeap) {
  HostAllocator allocator;
  const auto round = [&] {
    std::vector<HostBuffer> buffers(8);
    const std::int64_t before = runtime::num_allocations();
    for (std::int64_t size : {1, 100, 5000, 70'000, 3 << 20, 9 << 20, 64, 100})
      buffers[static_cast<std::size_t>(size % 8)] = *allocator.allocate(size);
    for (HostBuffer& buffer : buffers) buffer = {};
    return runtime::num_allocations() - before;
  };
  for (int i = 0; i < 3; ++i) round();
  EXPECT_EQ(round(), 0);
}

TEST(HostAllocator, ALimitIsOnBytesInUse) {
  HostAllocator allocator({.max_bytes = 1 << 20});
  HostBuffer all = *allocator.allocate(1 << 20);
  const auto more = allocator.allocate(1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), Code::ResourceExhausted);
  all = {};
  EXPECT_TRUE(allocator.allocate(1 << 20));
  EXPECT_EQ(allocator.allocate((1 << 20) + 1).error().code(), Code::ResourceExhausted);
}

TEST(HostAllocator, WarmPagesCostNoFault) {
  constexpr std::int64_t kBytes = 64 << 20;
  HostAllocator allocator;
  ASSERT_TRUE(allocator.warm(kBytes));
  EXPECT_EQ(allocator.statistics().num_buffers, 0);
  EXPECT_GE(allocator.statistics().bytes_cached, kBytes);
  EXPECT_GT(allocator.statistics().page_faults, 0);
  const HostBuffer buffer = *allocator.allocate(kBytes);
  EXPECT_EQ(runtime::absent_bytes(buffer.bytes()), 0);
  EXPECT_TRUE(allocator.warm(kBytes, 0));
  EXPECT_EQ(allocator.warm(std::int64_t{1} << 40).error().code(), Code::InvalidArgument);
  EXPECT_EQ(allocator.warm(-1).error().code(), Code::InvalidArgument);
}

TEST(HostAllocator, AForkedChildGoesOn) {
  HostAllocator allocator;
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int t = 0; t < 3; ++t)
    others.emplace_back([&, t] {
      for (std::int64_t i = 0; !stop; ++i) static_cast<void>(allocator.allocate(100 + 3'000'000 * ((i + t) % 2)));
    });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(allocator.allocate(5000) && allocator.allocate(9 << 20) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  for (std::thread& other : others) other.join();
}

// End of what is looked at in the beginning of a buffer; the same number of bytes is at its end.
std::byte* first_end(const HostBuffer& buffer) {
  return buffer.data() + std::min<std::int64_t>(buffer.size_bytes(), 500);
}

TEST(HostAllocator, ManyThreads) {
  Hooks hooks;
  {
    HostAllocator::Options options = hooks.options();
    options.max_cached_bytes = 1 << 20;
    HostAllocator allocator(std::move(options));
    std::vector<std::thread> threads;
    std::atomic<int> damaged = 0;
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        std::vector<HostBuffer> buffers(8);
        for (int i = 0; i < 300; ++i) {
          HostBuffer& buffer = buffers[random() % buffers.size()];
          for (std::byte* end : {first_end(buffer), buffer.data() + buffer.size_bytes()})
            damaged += static_cast<int>(std::count_if(end - (first_end(buffer) - buffer.data()), end, [&](std::byte b) {
              return b != static_cast<std::byte>(t);
            }));
          const std::int64_t size = static_cast<std::int64_t>(random() % 20 == 0 ? 5 << 20 : random() % 20000);
          buffer = *allocator.allocate({.size_bytes = size, .alignment = std::int64_t{1} << random() % 14});
          std::fill(buffer.data(), first_end(buffer), static_cast<std::byte>(t));
          std::fill(buffer.data() + buffer.size_bytes() - (first_end(buffer) - buffer.data()),
                    buffer.data() + buffer.size_bytes(), static_cast<std::byte>(t));
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(damaged, 0);
    EXPECT_EQ(allocator.statistics().bytes_in_use, 0);
    EXPECT_EQ(allocator.statistics().num_buffers, 0);
  }
  EXPECT_EQ(hooks.maps, hooks.unmaps);
  EXPECT_TRUE(hooks.mapped.empty());
}

}  // namespace
}  // namespace hloom
