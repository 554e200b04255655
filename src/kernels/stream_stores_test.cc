// Which stores are marked: by size, memory, readers and the shape of what they fill.
#include "kernels/stream_stores.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/print.h"
#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

// How many stores are marked in a kernel where `statements` are inside `for r in 0..8 { for i in 0..1024 by LANES`.
std::int64_t marked(const std::string& arguments, int lanes, const std::string& statements, std::int64_t least_bytes = 1 << 15) {
  auto kernel = parse("kernel k(a: f32[8192], m: pred[1024]) -> (" + arguments + ") { for r in 0..8 { for i in 0..1024 by " +
                      std::to_string(lanes) + " { x = load f32 a[1024*r + i] " + statements + " } } }");
  EXPECT_TRUE(kernel) << kernel.error().message();
  EXPECT_TRUE(verify(*kernel));
  stream_stores(*kernel, {least_bytes, least_bytes});
  const std::string text = print(*kernel);
  std::int64_t count = 0;
  for (std::size_t at = text.find(" streamed"); at != std::string::npos; at = text.find(" streamed", at + 1)) ++count;
  return count;
}

TEST(StreamStores, WholeLinesOfLargeResults) {
  const std::string store = "store y[1024*r + i], x";
  EXPECT_EQ(marked("y: f32[8192]", 16, store), 1);
  EXPECT_EQ(marked("y: f32[8192]", 16, store, (1 << 15) + 1), 0) << "too small";
  EXPECT_EQ(marked("y: f32[8192] overlap", 16, store), 0) << "may be what is read";
  EXPECT_EQ(marked("y: f32[8192]", 16, "p = load pred m[i] store y[1024*r + i], x where p"), 0) << "parts of lines";
  EXPECT_EQ(marked("y: f32[8192]", 16, "store y[1024*r + i], x w = load f32 y[1024*r + i]"), 0) << "read";
  EXPECT_EQ(marked("y: f32[8192], z: f32[1024]", 16, store + " store z[i], x"), 1) << "each by itself";
}

TEST(StreamStores, HalfLinesThatFollow) {
  EXPECT_EQ(marked("y: f32[8192]", 8, "store y[1024*r + i], x"), 1);
  EXPECT_EQ(marked("y: f32[8192]", 4, "store y[1024*r + i], x"), 0) << "quarters";
  EXPECT_EQ(marked("y: f32[16384]", 8, "store y[1024*r + i], x store y[1024*r + i + 8192], x"), 0) << "two places";
  EXPECT_EQ(marked("y: f32[16384]", 16, "store y[1024*r + i], x store y[1024*r + i + 8192], x"), 2) << "of whole lines";
  EXPECT_EQ(marked("y: f32[8192]", 8, "store y[2*i + r], x"), 0) << "apart";
}

TEST(StreamStores, WhatWasTurnedOverLiesApart) {
  const std::string source =
      "kernel k(a: f32[8192]) -> (y: f32[8192]) { for r in 0..8 { for i in 0..16 by 16 { x = load f32 a[16*r + i] z = load f32 a[i] "
      "store y[16*r + i + 4096], z\n";
  std::string loads, names, results, stores;
  for (int n = 0; n < 16; ++n) {
    const std::string k = std::to_string(n);
    loads += "v" + k + " = load f32 a[16*r + i + " + std::to_string(128 * n) + "]\n";
    names += (n > 0 ? ", v" : "v") + k;
    results += (n > 0 ? ", w" : "w") + k;
    stores += "store y[16*r + i + " + std::to_string(128 * n) + "], w" + k + "\n";
  }
  auto kernel = parse(source + loads + results + " = transpose f32 " + names + "\n" + stores + "} } }");
  ASSERT_TRUE(kernel) << kernel.error().message();
  const auto count = [&](const LeastStreamed& least) {
    Kernel marked = *kernel;
    stream_stores(marked, least);
    const std::string text = print(marked);
    std::int64_t n = 0;
    for (std::size_t at = text.find(" streamed"); at != std::string::npos; at = text.find(" streamed", at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count({1 << 15, 1 << 15}), 17);
  EXPECT_EQ(count({1 << 16, 1 << 15}), 16) << "all but what follows";
  EXPECT_EQ(count({1 << 16, 1 << 16}), 0);
}

TEST(StreamStores, LeastBytesFollowTheCache) {
  base::Target target;
  target.l3_bytes = 32 << 20;
  EXPECT_EQ(least_streamed_bytes(target, false).in_order, 16 << 20);
  EXPECT_EQ(least_streamed_bytes(target, true).in_order, 32 << 20);
  EXPECT_EQ(least_streamed_bytes(target, true).apart, target.l2_bytes);
  target.l2_bytes = 24 << 20;
  EXPECT_EQ(least_streamed_bytes(target, false).apart, 16 << 20);
  target.l3_bytes = std::int64_t{1} << 30;  // of many cores
  EXPECT_EQ(least_streamed_bytes(target, true).in_order, 64 << 20);
}

}  // namespace
}  // namespace hloom::kernels
