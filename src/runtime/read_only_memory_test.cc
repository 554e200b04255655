#include "runtime/read_only_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace hloom::runtime {
namespace {

std::span<std::byte> add(ReadOnlyMemory& memory, std::int64_t size_bytes) {
  auto room = memory.add(size_bytes);
  EXPECT_TRUE(room) << room.error().message();
  return *room;
}

TEST(ReadOnlyMemory, PiecesAreAlignedZeroAndApart) {
  ReadOnlyMemory memory;
  std::mt19937 random(1);
  std::vector<std::span<std::byte>> pieces;
  for (const std::int64_t size : {0, 1, 63, 64, 65, 4096, 65536, 65537, 5 << 20}) pieces.push_back(add(memory, size));
  for (int n = 0; n < 500; ++n) pieces.push_back(add(memory, static_cast<std::int64_t>(random() % 300)));
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    EXPECT_NE(pieces[n].data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces[n].data()) % 64, 0u);
    EXPECT_TRUE(std::ranges::all_of(pieces[n], [](std::byte b) { return b == std::byte{0}; })) << n;
    std::ranges::fill(pieces[n], static_cast<std::byte>(n + 1));
  }
  ASSERT_TRUE(memory.protect());
  for (std::size_t n = 0; n < pieces.size(); ++n)
    EXPECT_TRUE(std::ranges::all_of(pieces[n], [&](std::byte b) { return b == static_cast<std::byte>(n + 1); })) << n;
}

TEST(ReadOnlyMemory, TakesFewPages) {
  ReadOnlyMemory one;
  add(one, 4);
  EXPECT_EQ(one.mapped_bytes(), 4096);
  ReadOnlyMemory many;
  for (int n = 0; n < 1000; ++n) add(many, 64);
  EXPECT_LE(many.mapped_bytes(), 2 * 64'000);
}

TEST(ReadOnlyMemory, WhatIsAddedLaterIsWritableAgain) {
  ReadOnlyMemory memory;
  const std::span<std::byte> first = add(memory, 8);
  ASSERT_TRUE(memory.protect());
  const std::span<std::byte> second = add(memory, 8);
  second[0] = std::byte{7};
  EXPECT_EQ(first[0], std::byte{0});
}

TEST(ReadOnlyMemoryDeathTest, AWriteEndsTheProcess) {
  ReadOnlyMemory memory;
  const std::span<std::byte> small = add(memory, 8), large = add(memory, 5 << 20);
  ASSERT_TRUE(memory.protect());
  EXPECT_DEATH(static_cast<volatile std::byte&>(small[7]) = std::byte{1}, "");  // a sanitizer dies in its own way
  EXPECT_DEATH(static_cast<volatile std::byte&>(large.back()) = std::byte{1}, "");
}

TEST(Pages, NodesAreAWish) {
  for (const auto& [list, nodes] : {std::pair("0\n", 1), {"0-1\n", 2}, {"0,2-3", 4}, {"", 1}, {"junk", 1}, {"0-99999", 1024}})
    EXPECT_EQ(nodes_of_list(list), nodes) << list;
  EXPECT_GE(num_memory_nodes(), 1);
  const Pages pages = *Pages::map(1 << 16);
  const std::span<std::byte> all(pages.data(), 1 << 16);
  std::ranges::fill(all, std::byte{5});
  for (const int node : {-1, 0, 1, 1023, 1024})
    for (const std::size_t from : {0, 1, 4095, 4096, 65535}) prefer_node(all.subspan(from), node);
  EXPECT_TRUE(std::ranges::all_of(all, [](std::byte b) { return b == std::byte{5}; }));
}

TEST(ReadOnlyMemory, TooMuchIsAnError) {
  ReadOnlyMemory memory;
  const auto room = memory.add(std::int64_t{1} << 52);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code(), Code::ResourceExhausted);
}

}  // namespace
}  // namespace hloom::runtime
