// Results larger than the caches, which go past them: the same values wherever their memory begins, for any number of threads.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hloom/executable.h"

namespace hloom {
namespace {

constexpr std::int64_t kRows = 2053, kColumns = 8209;  // 64 MiB, no line begins a row but the first

using Expect = std::function<float(const float* p, std::int64_t row, std::int64_t column)>;

void expect_values(const std::string& root, std::int64_t rows, std::int64_t columns, const Expect& expected) {
  const std::string shape = "f32[" + std::to_string(kRows) + "," + std::to_string(kColumns) + "]";
  const std::string result = "f32[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  const std::string text = "HloModule m\nENTRY e { p = " + shape + " parameter(0)\n z = f32[] constant(0.5)\n ROOT r = " + result + " " + root + " }";
  std::vector<float> p(static_cast<std::size_t>(kRows * kColumns));
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<float>(i % 8'388'593);
  const auto size = static_cast<std::size_t>(4 * rows * columns);
  std::vector<std::byte> memory(size + 128);
  for (const int threads : {1, 2}) {
    CompileOptions options;
    options.threads = threads;
    const auto program = Executable::compile(text, options);
    ASSERT_TRUE(program) << program.error().message();
    for (const std::size_t from : {std::size_t{0}, std::size_t{4}, std::size_t{48}}) {
      std::memset(memory.data(), 0xA5, memory.size());
      std::vector<std::span<std::byte>> inputs = {std::as_writable_bytes(std::span(p))};
      std::vector<std::span<std::byte>> outputs = {std::span(memory).subspan(from, size)};
      const auto done = program->run_into(inputs, outputs);
      ASSERT_TRUE(done) << done.error().message();
      std::int64_t wrong = 0;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          float got = 0;
          std::memcpy(&got, outputs[0].data() + 4 * (r * columns + c), 4);
          wrong += got == expected(p.data(), r, c) ? 0 : 1;
        }
      EXPECT_EQ(wrong, 0) << root << " from byte " << from << ", " << threads << " threads";
      for (std::size_t b = 0; b < memory.size(); ++b)
        if (b < from || b >= from + size) {
          ASSERT_EQ(memory[b], std::byte{0xA5}) << "byte " << b << " is outside";
        }
    }
  }
}

TEST(LargeResults, Elementwise) {
  expect_values("add(p, p)", kRows, kColumns, [](const float* p, std::int64_t r, std::int64_t c) { return 2 * p[r * kColumns + c]; });
}
TEST(LargeResults, Transposed) {
  expect_values("transpose(p), dimensions={1,0}", kColumns, kRows,
                [](const float* p, std::int64_t r, std::int64_t c) { return p[c * kColumns + r]; });
}

// Squares of 64, 32, 16 and 8, what is left beside them, and lines past a core's cache: of any width, from any address.
TEST(LargeResults, TransposedOfEachWidth) {
  constexpr std::int64_t kTall = 1667, kWide = 1283;
  for (const auto& [type, width] : {std::pair{"s8", 1}, {"pred", 1}, {"bf16", 2}, {"s32", 4}, {"f64", 8}, {"c128", 16}}) {
    const std::string from_shape = type + std::string("[") + std::to_string(kTall) + "," + std::to_string(kWide) + "]";
    const std::string to_shape = type + std::string("[") + std::to_string(kWide) + "," + std::to_string(kTall) + "]";
    const auto program = Executable::compile("ENTRY e { p = " + from_shape + " parameter(0)\n ROOT r = " + to_shape +
                                             " transpose(p), dimensions={1,0} }");
    ASSERT_TRUE(program) << program.error().message();
    const auto size = static_cast<std::size_t>(kTall * kWide * width);
    std::vector<std::byte> p(size);
    std::uint32_t state = 1;
    for (std::byte& b : p) b = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> (std::string(type) == "pred" ? 31 : 24));
    for (const std::size_t from : {std::size_t{0}, static_cast<std::size_t>(width)}) {
      std::vector<std::byte> memory(size + 128, std::byte{0xA5});
      const auto aligned = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64 + from;
      std::vector<std::span<std::byte>> inputs = {p}, outputs = {std::span(memory).subspan(aligned, size)};
      ASSERT_TRUE(program->run_into(inputs, outputs));
      std::int64_t wrong = 0;
      for (std::int64_t r = 0; r < kWide; ++r)
        for (std::int64_t c = 0; c < kTall; ++c)
          wrong += std::memcmp(outputs[0].data() + (r * kTall + c) * width, p.data() + (c * kWide + r) * width, static_cast<std::size_t>(width)) != 0;
      EXPECT_EQ(wrong, 0) << type << " from byte " << from;
    }
  }
}

TEST(LargeResults, Padded) {
  expect_values("pad(p, z), padding=1_0x1_2", kRows + 1, kColumns + 3, [](const float* p, std::int64_t r, std::int64_t c) {
    return r == 0 || c == 0 || c > kColumns ? 0.5F : p[(r - 1) * kColumns + c - 1];
  });
}
TEST(LargeResults, Reversed) {
  expect_values("reverse(p), dimensions={1}", kRows, kColumns,
                [](const float* p, std::int64_t r, std::int64_t c) { return p[r * kColumns + kColumns - 1 - c]; });
}

}  // namespace
}  // namespace hloom
