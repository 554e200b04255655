#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::after;

TEST(LiftConstants, ArraysBecomeOperandsAndSplatsStay) {
  EXPECT_EQ(after("lift-constants", R"(HloModule m
f {
  a = s32[3] parameter(0)
  c = s32[3] constant({1, 2, 3})
  k = s32[3] constant({7, 7, 7})
  s = s32[3] add(a, c)
  ROOT t = s32[3] multiply(s, k)
}
ENTRY e {
  x = s32[3] parameter(0)
  ROOT r = s32[3] fusion(x), kind=kLoop, calls=f
})"),
            "a = s32[3] parameter(0)\nk = s32[3] constant({7, 7, 7})\nc.2 = s32[3] parameter(1)\ns = s32[3] add(a, c.2)\n"
            "ROOT t = s32[3] multiply(s, k)\n"
            "x = s32[3] parameter(0)\nc.1 = s32[3] constant({1, 2, 3})\nROOT r = s32[3] fusion(x, c.1), kind=kLoop, calls=f\n");
}

}  // namespace
}  // namespace hloom::passes
