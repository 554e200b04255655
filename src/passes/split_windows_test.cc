#include <gtest/gtest.h>

#include <algorithm>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "passes/match.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

std::string windows(const std::string& from, const std::string& to, const std::string& window, const std::string& opcode, const std::string& type) {
  return "HloModule m\nf { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT r = " + type + "[] " + opcode +
         "(a, b) }\nENTRY e {\n p = " + type + from + " parameter(0)\n z = " + type + "[] constant(3)\n ROOT r = " + type + to +
         " reduce-window(p, z), window={" + window + "}, to_apply=f\n}\n";
}

// The interpreter says the same before and after; so many reduce-windows are left.
void expect_same(const std::string& text, std::int64_t want_windows) {
  SCOPED_TRACE(text);
  const auto before = testing::parse(text), after = testing::parse(text);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(any(testing::run("split-windows", *after)), want_windows > 1);
  testing::run("remove-dead", *after);
  const auto left = std::ranges::count_if(after->entry()->instructions(), [](const Instruction& i) { return is(&i, Opcode::ReduceWindow); });
  EXPECT_EQ(left, want_windows) << testing::body(*after);
  EXPECT_EQ(testing::run("split-windows", *after), Changed::No) << testing::body(*after);
  hlo::Literal argument(before->entry()->parameter(0)->shape());
  std::int32_t k = 0;
  if (argument.shape().dtype() == DType::S32)
    for (auto& x : argument.mutable_data<std::int32_t>()) x = k++ * 5 % 7 - 3;
  else
    for (auto& x : argument.mutable_data<float>()) x = static_cast<float>(k++ * 5 % 7 - 3);
  const auto want = interp::interpret(*before, {&argument, 1}), got = interp::interpret(*after, {&argument, 1});
  ASSERT_TRUE(want && got);
  const auto exact = arrays::Tolerance::exact();
  EXPECT_EQ(arrays::compare_results({&*got, 1}, {&*want, 1}, {&exact, 1}), std::nullopt) << testing::body(*after);
}

TEST(SplitWindows, DimensionsGoOneAfterTheOther) {
  for (const char* opcode : {"add", "maximum", "minimum"}) {
    expect_same(windows("[40,50]", "[40,50]", "size=9x8 pad=4_4x3_4", opcode, "f32"), 2);
    expect_same(windows("[40,3,150]", "[20,3,50]", "size=9x1x8 stride=2x1x3 pad=4_4x0_0x3_4", opcode, "f32"), 2);
    expect_same(windows("[20,30]", "[39,88]", "size=7x9 pad=3_3x4_4 lhs_dilate=2x3", opcode, "s32"), 2);
  }
}

TEST(SplitWindows, ALongOneIsOfWindowsOfWindows) {
  for (const char* opcode : {"add", "maximum", "multiply"}) {
    expect_same(windows("[5,900]", "[5,865]", "size=1x36", opcode, "s32"), 2);          // 6 of 6
    expect_same(windows("[5,900]", "[5,900]", "size=1x101 pad=0_0x50_50", opcode, "s32"), 3);  // 10 of 10 and 1
    expect_same(windows("[5,900]", "[5,300]", "size=1x50 stride=1x3 pad=0_0x-2_51 rhs_dilate=1x1", opcode, "s32"), 3);
    expect_same(windows("[2,3000]", "[2,1801]", "size=1x600 rhs_dilate=1x2 pad=0_0x-1_0", opcode, "s32"), 3);
  }
}

TEST(SplitWindows, OthersStay) {
  expect_same(windows("[40,50]", "[40,50]", "size=3x3 pad=1_1x1_1", "add", "f32"), 1);
  expect_same(windows("[4,900]", "[4,900]", "size=1x900 pad=0_0x899_0", "add", "f32"), 1);  // a running sum
  expect_same(windows("[40,50]", "[40,50]", "size=9x8 pad=4_4x3_4", "multiply", "f32"), 1);
  expect_same(windows("[9,20]", "[9,20]", "size=9x8 pad=4_4x3_4", "add", "f32"), 1);  // few results
}

}  // namespace
}  // namespace hloom::passes
