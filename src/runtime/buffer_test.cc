#include "hloom/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/allocations_test.h"
#include "runtime/process_allocator.h"

namespace hloom {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(Buffer, OwnsAlignedMemoryOfAnySize) {
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{64}, std::int64_t{5} << 20}) {
    const Buffer buffer = *Buffer::allocate(size);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer.size_bytes(), size);
  }
  EXPECT_EQ(Buffer::allocate(-1).error().code(), Code::InvalidArgument);
}

TEST(Buffer, CopiesHaveBytesOfTheirOwn) {
  std::vector<std::byte> from = some_bytes(100);
  Buffer buffer = *Buffer::copy_of(from);
  from[7] = std::byte{99};
  EXPECT_EQ(buffer.bytes()[7], std::byte{7});
  buffer.mutable_bytes()[8] = std::byte{1};
  EXPECT_EQ(buffer.as<std::uint8_t>()[8], 1);
}

// The last handle calls `release`, whichever it is and on whichever thread; slices outlive the handle they were cut from.
TEST(Buffer, ForeignMemoryIsReleasedOnceWithTheLastHandle) {
  std::vector<std::byte> memory = some_bytes(64);
  int released = 0;
  Buffer part;
  {
    const Buffer whole = Buffer::borrow(memory, [&] { ++released; });
    EXPECT_FALSE(whole.is_shared());
    part = whole.slice(16, 8).slice(4, 4);
    EXPECT_TRUE(whole.is_shared());
    const Buffer other = whole;
  }
  EXPECT_EQ(released, 0);
  EXPECT_EQ(part.data(), memory.data() + 20);
  EXPECT_EQ(part.size_bytes(), 4);
  EXPECT_FALSE(part.is_shared());
  std::thread([last = std::move(part)] {}).join();
  EXPECT_EQ(released, 1);
}

TEST(Buffer, MovesLeaveNothing) {
  int released = 0;
  std::vector<std::byte> memory(4);
  Buffer from = Buffer::borrow(memory, [&] { ++released; });
  Buffer to = std::move(from);
  EXPECT_EQ(from.data(), nullptr);
  to = Buffer();
  EXPECT_EQ(released, 1);
}

TEST(Buffer, KnowsWhatItIs) {
  std::vector<std::byte> memory(8);
  EXPECT_FALSE(Buffer::borrow(memory).is_immutable());
  EXPECT_TRUE(Buffer::borrow_immutable(memory).is_immutable());
  EXPECT_TRUE(Buffer::borrow_immutable(memory).slice(1, 2).is_immutable());
  EXPECT_FALSE(Buffer::borrow(memory).is_donated());
  EXPECT_TRUE(donate(Buffer::borrow(memory)).is_donated());
}

TEST(Buffer, TakesOverMemoryOfAnAllocator) {
  HostAllocator allocator;
  Buffer buffer = Buffer::own(*allocator.allocate(100));
  EXPECT_EQ(buffer.size_bytes(), 100);
  EXPECT_EQ(allocator.statistics().num_buffers, 1);
  buffer = Buffer();
  EXPECT_EQ(allocator.statistics().num_buffers, 0);
}

TEST(Buffer, MemoryIsUsedAgainWithoutTheHeap) {
  const std::byte* first = nullptr;
  std::int64_t allocations = 0;
  for (int i = 0; i < 10; ++i) {
    const Buffer buffer = *Buffer::allocate(3000);
    if (i == 0) first = buffer.data();
    if (i == 2) allocations = runtime::num_allocations();
    EXPECT_EQ(buffer.data(), first);
  }
  EXPECT_EQ(runtime::num_allocations(), allocations);
}

TEST(Buffer, ManyThreadsShareHandles) {
  std::vector<std::byte> memory(64);
  std::atomic<int> released = 0;
  {
    const Buffer shared = Buffer::borrow(memory, [&] { ++released; });
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([shared] {
        for (int i = 0; i < 1000; ++i) EXPECT_EQ(Buffer(shared).slice(1, 3).size_bytes(), 3);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace hloom
