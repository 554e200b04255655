// The law of memory: compiled accesses touch what evaluated ones touch, at any stride, length, number of lanes, type
// and mask, and leave the bits alone.
#include <gtest/gtest.h>

#include "emit/test_memory.h"

namespace hloom::emit {
namespace {

using kernels::Kernel;

constexpr const char* kTypes[] = {"pred", "s4", "u8", "bf16", "f32", "f64", "c64", "c128"};

// y[d·i + e] = a[c·i + o] for i in 0..n, at the smallest offsets; under a mask from m, if wanted.
Kernel copy(const std::string& type, int lanes, std::int64_t n, std::int64_t c, std::int64_t d, bool masked) {
  const auto index = [&](std::int64_t stride) {
    return std::to_string(stride) + "*i + " + std::to_string(stride < 0 ? -stride * (n - 1) : 0);
  };
  const auto size = [&](std::int64_t stride) { return std::to_string(std::abs(stride) * (n - 1) + 1); };
  static int count = 0;
  const std::string mask = masked ? " where p" : "";
  const std::string text = "kernel copy." + std::to_string(count++) + "(a: " + type + "[" + size(c) + "], m: pred[" +
                           std::to_string(n) + "]) -> (y: " + type + "[" + size(d) + "]) { for i in 0.." +
                           std::to_string(n) + " by " + std::to_string(lanes) + " { p = load pred m[i] x = load " +
                           type + " a[" + index(c) + "]" + mask + " store y[" + index(d) + "], x" + mask + " } }";
  return *kernels::parse(text);
}

TEST(Access, EveryStride) {
  std::vector<Kernel> kernels;
  for (const char* type : kTypes)
    for (int lanes : {4, 16})
      for (std::int64_t n : {1, lanes, 2 * lanes + 3})
        for (std::int64_t stride : {-3, -2, -1, 0, 1, 2, 3, 4, 5}) {
          kernels.push_back(copy(type, lanes, n, stride, 1, stride % 2 != 0));
          if (stride != 0 && stride != 1) kernels.push_back(copy(type, lanes, n, 1, stride, stride % 2 == 0));
        }
  expect_laws(kernels, /*any_nan=*/false);
}

TEST(Access, EveryLength) {
  std::vector<Kernel> kernels;
  for (const char* type : {"u8", "f32", "c64"})
    for (int lanes : {2, 8, 64})
      for (std::int64_t n = 1; n <= 2 * lanes + 1; n += lanes > 8 ? 7 : 1) kernels.push_back(copy(type, lanes, n, 1, 1, false));
  expect_laws(kernels, /*any_nan=*/false);
}

// What is written in place, under all that may be left behind the last whole vector.
TEST(Access, EveryLengthInPlace) {
  std::vector<Kernel> kernels;
  for (const std::string type : {"u8", "f32", "c64"})
    for (const int lanes : {8, 16})
      for (std::int64_t n = 1; n <= 3 * lanes; ++n)
        for (const std::string shift : {"", " + 1"})
          kernels.push_back(*kernels::parse("kernel in_place." + std::to_string(kernels.size()) + "() -> (y: " + type +
                                            "[300]) { for r in 0..4 { for i in 0.." + std::to_string(n) + " by " + std::to_string(lanes) +
                                            " { x = load " + type + " y[" + std::to_string(n) + "*r + i" + shift + "] z = add " + type +
                                            " x, x store y[" + std::to_string(n) + "*r + i], z } } }"));
  expect_laws(kernels);
}

// A mask that one lane alone passes, known when code is made, and what is stored was narrowed right before: as many bytes as the
// element has, and no more.
TEST(Access, OnlyOneLane) {
  std::vector<Kernel> kernels;
  for (const std::string type : {"bf16", "f16", "s8", "u16", "s32", "f64"})
    for (const int lanes : {4, 16, 32})
      for (const int lane : {0, 1, 3}) {
        const std::string from = type == "bf16" || type == "f16" || type == "f64" ? "f32" : "s32";
        kernels.push_back(*kernels::parse("kernel only." + std::to_string(kernels.size()) + "(a: " + from + "[40], b: " + type + "[40]) -> (y: " + type +
                                          "[40], z: " + from + "[40]) { k = constant s64 " + std::to_string(lane) + " for i in 0.." + std::to_string(lanes) + " by " +
                                          std::to_string(lanes) + " { p = compare pred i, k eq signed x = load " + from + " a[i] n = convert " + type +
                                          " x store y[i + 3], n where p w = load " + type + " b[i] where p v = convert " + from + " w store z[i], v } }"));
      }
  expect_laws(kernels, /*any_nan=*/true);
}

// Blocks of any size against any number of lanes; the ranges are split in all ways.
TEST(Access, EveryBlock) {
  std::vector<Kernel> kernels;
  for (const int lanes : {4, 16})
    for (const std::int64_t block : {1, 3, 4, 16, 20, 32})
      for (const std::int64_t n : {1, 15, 16, 33, 64, 67})
        for (const char* target : {"a", "y"}) {
          const std::string name = "block." + std::to_string(kernels.size());
          kernels.push_back(*kernels::parse(
              "kernel " + name + "() -> (a: f32[70], y: f32[70]) blocks " + std::to_string((n + block - 1) / block) +
              " { for i in 2.." + std::to_string(n + 2) + " block " + std::to_string(block) + " by " +
              std::to_string(lanes) + " { x = load f32 a[i + 1] z = add f32 x, x store " + target +
              "[i - 1], z } }"));
        }
  expect_laws(kernels);
}

// Indices from memory: gathers and scatters, lanes that meet, masks.
TEST(Access, RunTimeIndices) {
  std::vector<Kernel> kernels;
  for (const char* type : kTypes)
    for (const int lanes : {4, 16, 64})
      for (const std::string mask : {"", " where p"}) {
        const std::string name = "kernel gather." + std::to_string(kernels.size());
        const std::string t = type;
        const std::string size = "67";
        kernels.push_back(*kernels::parse(
            name + "(a: " + t + "[200], m: pred[" + size + "], g: s64[" + size + "], s: s64[" + size + "]) -> (y: " +
            t + "[200]) { base = load s64 g[0] for i in 0.." + size + " by " + std::to_string(lanes) +
            " { p = load pred m[i] j = load s64 g[i] k = load s64 s[i] x = load " + t + " a[2*j + base - 0]" + mask +
            " store y[k + i], x" + mask + " h = index i + 3 w = load " + t + " a[h]" + mask + " store y[3*k], w" +
            mask + " } }"));
      }
  expect_laws(kernels, /*any_nan=*/false);
}

// A lane that does not run may have any index.
TEST(Access, MaskedLanesTouchNothing) {
  std::vector<Kernel> kernels;
  for (const std::string t : kTypes)
    for (const std::string lanes : {"", " by 4", " by 64"})
      kernels.push_back(*kernels::parse("kernel far." + std::to_string(kernels.size()) + "(a: " + t +
                                        "[64], g: s64[99]) -> (y: " + t + "[99]) { zero = constant s64 0 for i in 0..99" +
                                        lanes +
                                        " { j = load s64 g[i] p = compare pred j, zero eq signed x = load " + t +
                                        " a[1000000007*j] where p z = load " + t +
                                        " a[1000000*j + 7] where p store y[i + 1000000007*j], x where p "
                                        "q = compare pred i, zero eq signed store y[1000000*i + 1], z where q } }"));
  expect_laws(kernels, /*any_nan=*/false);
}

// Past the caches, from any place in a line on, in blocks; what is before the first line and behind the last is under masks.
TEST(Access, StreamedStores) {
  std::vector<Kernel> kernels;
  for (const char* type : {"u8", "bf16", "f32", "f64", "c64"})
    for (const int lanes : {8, 16, 64})
      for (const std::int64_t from : {0, 1, 3, 4, 7, 12, 16})
        for (const std::int64_t n : {std::int64_t{5}, 2 * static_cast<std::int64_t>(lanes), 3 * static_cast<std::int64_t>(lanes) + 5}) {
          const std::string t = type, name = "streamed." + std::to_string(kernels.size());
          const std::string size = std::to_string(2 * n + from);
          kernels.push_back(*kernels::parse(
              "kernel " + name + "(a: " + t + "[" + size + "]) -> (y: " + t + "[" + size + "], z: u8[" + size +
              "]) { for r in 0..2 { f = constant u8 3 for i in 0.." + std::to_string(n) + " by " + std::to_string(lanes) +
              " { x = load " + t + " a[" + std::to_string(n) + "*r + i] store y[" + std::to_string(n) + "*r + i + " +
              std::to_string(from) + "], x streamed store z[i], f streamed } } }"));
        }
  for (const std::int64_t block : {16, 40, 64})
    kernels.push_back(*kernels::parse("kernel streamed.blocks." + std::to_string(block) + "(a: f32[300]) -> (y: f32[300]) blocks " +
                                      std::to_string((300 + block - 1) / block) + " { for i in 0..300 block " +
                                      std::to_string(block) + " by 16 { x = load f32 a[i] store y[i], x streamed } }"));
  expect_laws(kernels, /*any_nan=*/false);
}

// One buffer that holds several types, and arguments that lie over each other.
TEST(Access, OverlapsAndBytes) {
  const auto kernels = *kernels::parse_kernels(R"(
kernel arena(b: bytes[1024] align 8 written) {
  for i in 0..40 by 16 {
    x = load f32 b[i]
    n = convert s16 x
    store b[i + 300], n
    y = load s16 b[i + 290]
    d = convert f64 y
    store b[i + 60], d
  }
}
kernel forward(a: f32[80] overlap) -> (y: f32[80] overlap) {
  for i in 0..67 by 16 { x = load f32 a[i + 3] z = add f32 x, x store y[i], z }
}
kernel backward(a: f32[80] overlap) -> (y: f32[80] overlap) {
  for i in 0..67 by 16 { x = load f32 a[i] z = add f32 x, x store y[i + 3], z }
}
kernel serial(a: f32[80] overlap) -> (y: f32[80] overlap) {
  for i in 0..67 { x = load f32 a[i] z = add f32 x, x store y[i + 3], z }
})");
  expect_laws({kernels[0]});
  for (std::int64_t shift = 0; shift <= 16; shift += 4)
    expect_laws({kernels[1], kernels[2], kernels[3]}, true, /*shared=*/1, shift);
}

}  // namespace
}  // namespace hloom::emit
