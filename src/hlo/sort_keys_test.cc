#include "hlo/sort_keys.h"

#include <gtest/gtest.h>

#include "text/parse.h"

namespace hloom::hlo {
namespace {

using Keys = std::vector<SortKey>;

// The keys of a sort of f32, s32 and u8 arrays by a comparator whose parameters are x, y, i, j, k and l.
std::optional<Keys> keys_of(const std::string& body) {
  const auto module = text::parse_module(
      "c {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n"
      " k = u8[] parameter(4)\n l = u8[] parameter(5)\n" + body + "}\n"
      "ENTRY e {\n p = f32[9] parameter(0)\n q = s32[9] parameter(1)\n r = u8[9] parameter(2)\n"
      " ROOT s = (f32[9], s32[9], u8[9]) sort(p, q, r), dimensions={0}, to_apply=c\n}\n",
      {.file_name = "test"});
  EXPECT_TRUE(module) << module.error().message();
  return sort_keys(*(*module)->entry()->root());
}

TEST(SortKeys, OneComparison) {
  EXPECT_EQ(keys_of("ROOT r = pred[] compare(i, j), direction=LT\n"), (Keys{{.operand = 1}}));
  EXPECT_EQ(keys_of("ROOT r = pred[] compare(i, j), direction=GT\n"), (Keys{{.operand = 1, .descending = true}}));
  EXPECT_EQ(keys_of("ROOT r = pred[] compare(j, i), direction=GT\n"), (Keys{{.operand = 1}}));
  EXPECT_EQ(keys_of("ROOT r = pred[] compare(l, k), direction=LT\n"), (Keys{{.operand = 2, .descending = true}}));
  EXPECT_EQ(keys_of("ROOT r = pred[] compare(x, y), direction=LT, type=TOTALORDER\n"), (Keys{{}}));
}

TEST(SortKeys, AsJaxComparesFloats) {
  EXPECT_EQ(keys_of("zero = f32[] constant(0)\n quiet = f32[] constant(nan)\n"
                    "a = pred[] compare(x, x), direction=NE\n b = pred[] compare(x, zero), direction=EQ\n"
                    "c = f32[] select(b, zero, x)\n d = f32[] select(a, quiet, c)\n"
                    "e = pred[] compare(y, y), direction=NE\n f = pred[] compare(zero, y), direction=EQ\n"
                    "g = f32[] select(f, zero, y)\n h = f32[] select(e, quiet, g)\n"
                    "ROOT r = pred[] compare(d, h), direction=LT, type=TOTALORDER\n"),
            (Keys{{.zeros_equal = true, .nans_equal = true}}));
}

TEST(SortKeys, OneAfterTheOther) {
  EXPECT_EQ(keys_of("a = pred[] compare(k, l), direction=GT\n b = pred[] compare(k, l), direction=EQ\n"
                    "c = pred[] compare(i, j), direction=LT\n d = pred[] and(b, c)\n ROOT r = pred[] or(a, d)\n"),
            (Keys{{.operand = 2, .descending = true}, {.operand = 1}}));
  EXPECT_EQ(keys_of("a = pred[] compare(k, l), direction=LT\n b = pred[] compare(l, k), direction=EQ\n"
                    "c = pred[] compare(i, j), direction=LT\n d = pred[] and(c, b)\n ROOT r = pred[] or(d, a)\n"),
            (Keys{{.operand = 2}, {.operand = 1}}));
}

TEST(SortKeys, OtherComparatorsHaveNone) {
  const char* const others[] = {
      "ROOT r = pred[] compare(x, y), direction=LT\n",                         // NaN is neither before nor after
      "ROOT r = pred[] compare(i, j), direction=LE\n",                         // equal elements change places
      "ROOT r = pred[] compare(i, i), direction=LT\n",                         // of one element
      "a = s32[] negate(i)\n ROOT r = pred[] compare(a, j), direction=LT\n",   // of something else
      "ROOT r = pred[] constant(false)\n",
      // Only one side takes -0 for 0.
      "zero = f32[] constant(0)\n b = pred[] compare(x, zero), direction=EQ\n c = f32[] select(b, zero, x)\n"
      "ROOT r = pred[] compare(c, y), direction=LT, type=TOTALORDER\n",
      // Zeros count as -0.
      "zero = f32[] constant(-0)\n b = pred[] compare(x, zero), direction=EQ\n c = f32[] select(b, zero, x)\n"
      "d = pred[] compare(y, zero), direction=EQ\n e = f32[] select(d, zero, y)\n"
      "ROOT r = pred[] compare(c, e), direction=LT, type=TOTALORDER\n",
      // Equal by another key than before.
      "a = pred[] compare(k, l), direction=LT\n b = pred[] compare(i, j), direction=EQ\n"
      "c = pred[] compare(i, j), direction=LT\n d = pred[] and(b, c)\n ROOT r = pred[] or(a, d)\n",
  };
  for (const char* body : others) EXPECT_FALSE(keys_of(body)) << body;
}

}  // namespace
}  // namespace hloom::hlo
