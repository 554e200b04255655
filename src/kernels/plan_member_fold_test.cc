// Folds of any number of members, rows, columns and pitches are the serial fold in the order of members, written to
// every result, whatever the order of the blocks.
#include "kernels/plan_member_fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/evaluate.h"
#include "kernels/verify.h"
#include "text/parse.h"

namespace hloom::kernels {
namespace {

// 3·a - b: not associative, not commutative.
std::unique_ptr<hlo::Module> reducer() {
  auto module = text::parse_module(
      "f { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] constant(3)\n"
      "  d = s32[] multiply(a, c) ROOT r = s32[] subtract(d, b) }\n"
      "ENTRY e { x = s32[4] parameter(0) ROOT y = s32[4] all-reduce(x), to_apply=f }");
  EXPECT_TRUE(module) << module.error().message();
  return *std::move(module);
}

TEST(PlanMemberFold, IsTheSerialFold) {
  const auto module = reducer();
  std::mt19937 random(1);
  const auto pick = [&](std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
  };
  for (int trial = 0; trial < 60; ++trial) {
    MemberFold fold{module->entry()->root()->to_apply(), DType::S32};
    fold.members = pick(1, 9);
    fold.results = pick(1, 3);
    fold.rows = pick(0, 3) == 0 ? 1 : pick(0, 40);
    fold.columns = pick(0, 4) == 0 ? pick(0, 20'000 / std::max<std::int64_t>(fold.rows, 1)) : pick(0, 50);
    fold.pitch = fold.columns + pick(0, 5);
    const auto kernel = plan_member_fold(fold, "fold");
    ASSERT_TRUE(kernel) << kernel.error().message();
    const auto good = verify(*kernel);
    ASSERT_TRUE(good) << good.error().message();

    std::vector<std::vector<std::int32_t>> arrays(static_cast<std::size_t>(fold.members),
                                                  std::vector<std::int32_t>(fold.rows * fold.pitch + 1));
    for (auto& a : arrays)
      for (std::int32_t& x : a) x = static_cast<std::int32_t>(random());
    const std::vector<std::int32_t> untouched(static_cast<std::size_t>(fold.rows * fold.columns), 77);
    for (std::int64_t r = 0; r < fold.results; ++r) arrays.push_back(untouched);
    std::vector<void*> pointers;
    for (auto& a : arrays) pointers.push_back(a.data());
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(kernel->blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (const std::int64_t b : blocks) ASSERT_TRUE(evaluate(*kernel, pointers.data(), b, b + 1, nullptr));

    for (std::int64_t row = 0; row < fold.rows; ++row)
      for (std::int64_t c = 0; c < fold.columns; ++c) {
        std::uint32_t want = 0;
        for (std::int64_t m = 0; m < fold.members; ++m) {
          const auto x = static_cast<std::uint32_t>(
              arrays[static_cast<std::size_t>(m)][static_cast<std::size_t>(row * fold.pitch + c)]);
          want = m == 0 ? x : 3 * want - x;
        }
        for (std::int64_t r = 0; r < fold.results; ++r)
          ASSERT_EQ(
              arrays[static_cast<std::size_t>(fold.members + r)][static_cast<std::size_t>(row * fold.columns + c)],
              static_cast<std::int32_t>(want))
              << fold.members << " members, " << fold.rows << " x " << fold.columns << " of " << fold.pitch;
      }
  }
}

}  // namespace
}  // namespace hloom::kernels
