// Shapes and layouts.
#include <gtest/gtest.h>

#include <string>

#include "text/parse.h"

namespace hloom::text {
namespace {

std::string round_trip(std::string_view text) {
  const auto shape = parse_shape(text);
  return shape ? to_string(*shape) : shape.error().message();
}

TEST(Shapes, WhatIsCanonicalStaysAsItIs) {
  for (const std::string_view text :
       {"f32[]",
        "f32[2,3]{1,0}",
        "f32[2,3]{0,1}",
        "f32[0]{0}",
        "f32[<=0]{0}",
        "f32[<=8,3]{1,0}",
        "f32[?,3]{1,0}",
        "()",
        "((), ())",
        "(f32[], (s32[2]{0}, token[]), opaque[])",
        "token[]",
        "opaque[]",
        "b(f32[16]{0})",
        "(b(s8[]), f32[])",
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[], f32[], f32[], f32[], f32[], /*index=10*/f32[], f32[])",
        "u32[]{:S(2)}",
        "bf16[16,512]{1,0:T(8,128)(2,1)S(1)}",
        "s4[10]{0:E(4)}",
        "f32[64,96]{1,0:SC(1:32)}",
        "f32[64,96]{1,0:SC(0:16,32)(1:32)}",
        "f32[4,4]{1,0:D(D,C+~)#(u32)*(u8)}",
        "f32[4]{0:L(8)}",
        "f32[4]{0:M(16)}",
        "f32[4,4]{1,0:T(*,2)}",
        "f32[4,4]{1,0:D(C,H)T(2,2)L(4)#(u32)*(u64)E(64)S(3)SC(0:2)P((f32[4], s32[4]{0}))M(8)}"})
    EXPECT_EQ(round_trip(text), text);
}

TEST(Shapes, OtherSpellings) {
  EXPECT_EQ(round_trip("f32[2,3]"), "f32[2,3]{1,0}");
  EXPECT_EQ(round_trip(" f32 [ 2 , 3 ] { 1 , 0 } "), "f32[2,3]{1,0}");
  EXPECT_EQ(round_trip("f32[]{}"), "f32[]");
  EXPECT_EQ(round_trip("f32[2]{0:}"), "f32[2]{0}");
  EXPECT_EQ(round_trip("f32[2]{0:S(0)}"), "f32[2]{0}");  // defaults are not written
  EXPECT_EQ(round_trip("f32[2]{0:D(D)L(1)E(0)M(0)}"), "f32[2]{0}");
  EXPECT_EQ(round_trip("(f32[2],s32[])"), "(f32[2]{0}, s32[])");
  const auto bare = parse_shape("f32[2,3]", {.fill_missing_layouts = false});
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->has_layout());
  EXPECT_EQ(to_string(*bare), "f32[2,3]");
}

TEST(Shapes, EveryElementType) {
  for (int n = 1; n <= static_cast<int>(DType::F8E8M0FNU); ++n) {
    const auto type = static_cast<DType>(n);
    if (!is_array_type(type)) continue;
    const std::string text = std::string(name(type)) + "[3]{0}";
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST(Shapes, WhatIsWrong) {
  for (const std::string_view text : {"",
                                      "f32",
                                      "f32[",
                                      "f32[2",
                                      "f32[2}",
                                      "f31[2]",
                                      "tuple[2]",
                                      "buffer[]",
                                      "f32[-1]",
                                      "f32[2]{",
                                      "f32[2]{0",
                                      "f32[2]{1}",
                                      "f32[2]{0,1}",
                                      "f32[2,2]{0,0}",
                                      "f32[2]{0:X}",
                                      "f32[2]{0:S(1)S(1)}",
                                      "f32[2]{0:S(1)T(2)}",
                                      "f32[2]{0:S(-1)}",
                                      "f32[2]{0:S()}",
                                      "f32[2]{0:T()}",
                                      "f32[2]{0:T(2,2)}",
                                      "f32[2]{0:T(-1)}",
                                      "f32[2]{0:L(0)}",
                                      "f32[2]{0:E(16)}",
                                      "f32[2]{0:E(129)}",
                                      "f32[2]{0:#(f32)}",
                                      "f32[2]{0:SC(1:1)}",
                                      "f32[2]{0:D(D,D)}",
                                      "f32[2]{0:D(X)}",
                                      "f32[2] x",
                                      "(f32[2]",
                                      "(f32[2],)",
                                      "(,)",
                                      "b()",
                                      "b(f32[2]",
                                      "token[2]",
                                      "opaque[1]",
                                      "token[]{0}",
                                      "(f32[2]){0}",
                                      "f32[<2]",
                                      "f32[<=-1]",
                                      "f32[4294967296,4294967296]",
                                      "f64[1152921504606846976]",
                                      "f32[9223372036854775807]",
                                      "f32[18446744073709551616]",
                                      "f32[2,2]{1,0:T(9223372036854775807,2)}"})
    EXPECT_FALSE(parse_shape(text)) << text;
  std::string many = "f32[1";
  for (int i = 0; i < 63; ++i) many += ",1";
  EXPECT_TRUE(parse_shape(many + "]"));
  EXPECT_FALSE(parse_shape(many + ",1]"));
  EXPECT_TRUE(parse_shape("f32[0,9223372036854775807]"));  // empty
  EXPECT_FALSE(parse_shape(std::string(501, '(') + "f32[]" + std::string(501, ')')));
  EXPECT_TRUE(parse_shape(std::string(400, '(') + "f32[]" + std::string(400, ')')));
}

// A brace after a shape is a layout only if a number or a colon follows.
TEST(Shapes, ABodyMayFollowAShape) {
  for (const std::string_view text :
       {"ENTRY e (p: f32[]) -> f32[]{ p = f32[] parameter(0) }",
        "ENTRY e (p: f32[]) -> f32[] { %p = f32[] parameter(0) }",
        "ENTRY e (p: f32[2]) -> f32[2]{0}{ p = f32[2]{0} parameter(0) }",
        "ENTRY e (p: f32[2]) -> (f32[2]{0}) { p = f32[2]{0} parameter(0) ROOT t = tuple(p) }"}) {
    const auto module = parse_module(text);
    EXPECT_TRUE(module) << module.error().message();
  }
}

}  // namespace
}  // namespace hloom::text
