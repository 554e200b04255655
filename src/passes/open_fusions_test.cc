#include "passes/open_fusions.h"

#include "hlo/verify.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::parse;

std::string program(std::string_view kind, std::string_view body) {
  return "HloModule m, is_scheduled=true\nsecond { a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1) }\n"
         "f { x = f32[8]{0} parameter(0)\n" +
         std::string(body) +
         " }\nENTRY e {\n  x = f32[8]{0} parameter(0)\n"
         "  y = f32[8]{0} negate(x)\n  ROOT z = f32[8]{0} fusion(y), kind=" +
         std::string(kind) + ", calls=f\n}";
}

Changed opened(const std::string& text) {
  const auto module = parse(text);
  const Changed changed = *open_fusions(*module);
  const auto good = hlo::check_module(*module);
  EXPECT_TRUE(good) << good.error().message();
  return changed;
}

TEST(OpenFusions, CustomOnesMeanTheirComputation) {
  EXPECT_EQ(opened(program("kLoop", "ROOT n = f32[8]{0} add(x, x)")), Changed::No);
  EXPECT_EQ(opened(program("kCustom", "ROOT n = f32[8]{0} add(x, x)")), Changed::Yes);
}

// The kernel writes element by element; here an element that was written would be read.
TEST(OpenFusions, AnUpdateThatReadsOtherPlacesOfItsArrayIsOpened) {
  EXPECT_EQ(opened(program("kLoop",
                           "s = f32[4]{0} slice(x), slice={[0:4]}\n m = f32[4]{0} multiply(s, s)\n"
                           "one = s32[] constant(1)\n ROOT u = f32[8]{0} dynamic-update-slice(x, m, one)")),
            Changed::Yes);
}

// Sizes are checked by a call, which is in no kernel.
TEST(OpenFusions, WhatSetsRunTimeSizesIsOpened) {
  EXPECT_EQ(opened(program("kLoop",
                           "n = s32[] constant(3)\n d = f32[<=8]{0} set-dimension-size(x, n), dimensions={0}\n"
                           "zero = f32[] constant(0)\n sum = f32[] reduce(d, zero), dimensions={0}, to_apply=second\n"
                           "ROOT b = f32[8]{0} broadcast(sum), dimensions={}")),
            Changed::Yes);
}

}  // namespace
}  // namespace hloom::passes
