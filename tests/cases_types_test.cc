// Windows, element types, empty shapes, layouts, random bits, single devices.
#include "cases.h"

namespace hloom::cases {
namespace {

using arrays::Tolerance;

std::string nibbles(const std::string& type, const std::string& op, int n) {
  return "HloModule nibbles\nENTRY root {\n  c = " + type + "[9] parameter(0)\n  s = " + type + "[" +
         std::to_string(n) + "] " + op + "\n  ROOT w = s32[" + std::to_string(n) + "] convert(s)\n}";
}
const std::string kNibbles = "{-8,-7,-1,0,1,2,5,6,7}";

std::string dilated_base(int rows, int columns) {
  const auto s = [](int n) { return std::to_string(n); };
  return "HloModule holes\nmx { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT m = f32[] maximum(a, b) "
         "}\nENTRY root {\n"
         "  x = f32[" +
         s(rows) + "," + s(columns) + "] iota(), iota_dimension=0\n  ninf = f32[] constant(-inf)\n  w = f32[" +
         s(rows / 2) + "," + s(2 * columns - 1) +
         "] reduce-window(x, ninf), window={size=2x1 stride=2x1 lhs_dilate=1x2}, to_apply=mx\n"
         "  ROOT f = f32[1,5] slice(w), slice={[1:2], [0:5]}\n}";
}

constexpr const char* kPerChannel = R"(HloModule per_channel
ENTRY root {
  x = f32[1,3,3,2] parameter(0)
  k = f32[2,2,1,4] parameter(1)
  ROOT y = f32[1,1,1,4] convolution(x, k), window={size=2x2 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=2
})";

constexpr const char* kFarShift = R"(HloModule far_shift
ENTRY root {
  x = s32[4] constant({-8, -8, -8, 1})
  n = s32[4] parameter(0)
  l = s32[4] shift-left(x, n)
  a = s32[4] shift-right-arithmetic(x, n)
  g = s32[4] shift-right-logical(x, n)
  m = s32[4] constant({32, 100, -1, 31})
  fl = s32[4] shift-left(x, m)
  fa = s32[4] shift-right-arithmetic(x, m)
  fg = s32[4] shift-right-logical(x, m)
  ROOT t = (s32[4], s32[4], s32[4], s32[4], s32[4], s32[4]) tuple(l, a, g, fl, fa, fg)
})";

constexpr const char* kMirror = R"(HloModule mirror
ENTRY root {
  x = f32[5] parameter(0)
  n = f32[5] negate(x)
  ob = f32[5] opt-barrier(n)
  r = f32[5] reverse(ob), dimensions={0}
  c = s8[5] convert(r)
  s = s8[1,5] reshape(c)
  f = s8[5] reshape(s)
  ROOT b = s8[3,5] broadcast(f), dimensions={1}
})";

constexpr const char* kColumnMajor =
    R"(HloModule column_major, entry_computation_layout={(f32[2,3]{0,1}, f32[3,2]{1,0})->(f32[2,2]{0,1}, f32[3,2]{1,0})}
ENTRY root {
  a = f32[2,3]{0,1} parameter(0)
  b = f32[3,2]{1,0} parameter(1)
  d = f32[2,2]{0,1} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[3,2]{1,0} transpose(a), dimensions={1,0}
  ROOT o = (f32[2,2]{0,1}, f32[3,2]{1,0}) tuple(d, t)
})";

constexpr const char* kEmptyCut = R"(HloModule empty_cut
ENTRY root {
  x = f32[2,3,4] parameter(0)
  s = f32[2,0,4] slice(x), slice={[0:2], [1:1], [0:4]}
  p = f32[] constant(9)
  ROOT q = f32[2,2,1] pad(s, p), padding=0_0x1_1x-3_0
})";

constexpr const char* kHollowLoop = R"(HloModule hollow_loop
cond { s = (s32[], u8[3,0,9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], u8[3,0,9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = u8[3,0,9] get-tuple-element(s), index=1
  g = u8[3,0,9] not(h)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], u8[3,0,9]) tuple(j, g) }
ENTRY root {
  z = s32[] constant(0)
  h = u8[3,0,9] constant({ { }, { }, { } })
  init = (s32[], u8[3,0,9]) tuple(z, h)
  ROOT w = (s32[], u8[3,0,9]) while(init), condition=cond, body=body
})";

constexpr const char* kFourBits = R"(HloModule four_bits
ENTRY root {
  x = s4[7] parameter(0)
  y = u4[7] parameter(1)
  a = s8[7] convert(x)
  b = s8[7] convert(y)
  s = s8[7] add(a, b)
  ROOT t = (s4[7], s8[7]) tuple(x, s)
})";

constexpr const char* kEightBitEdges = R"(HloModule f8_edges
ENTRY root {
  x = f32[6] parameter(0)
  a = f8e4m3fn[6] convert(x)
  b = f8e5m2[6] convert(x)
  fa = f32[6] convert(a)
  fb = f32[6] convert(b)
  ROOT t = (f32[6], f32[6]) tuple(fa, fb)
})";

// Whether each is a NaN, with the sign it had.
constexpr const char* kQuiet = R"(HloModule quiet_please
ENTRY root {
  b = u32[3] parameter(0)
  x = f32[3] bitcast-convert(b)
  h = bf16[3] convert(x)
  n = pred[3] compare(h, h), direction=NE
  u = u16[3] bitcast-convert(h)
  fifteen = u16[3] constant({15, 15, 15})
  sign = u16[3] shift-right-logical(u, fifteen)
  ROOT t = (pred[3], u16[3]) tuple(n, sign)
})";

constexpr const char* kAlone = R"(HloModule alone
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY root {
  p = f32[4] parameter(0)
  a = f32[4] all-reduce(p), replica_groups={}, to_apply=sum
  i = u32[] replica-id()
  f = f32[] convert(i)
  fb = f32[4] broadcast(f), dimensions={}
  ROOT r = f32[4] add(a, fb)
})";

constexpr const char* kForeignMesh = R"(HloModule foreign_mesh, num_partitions=1
ENTRY root {
  p = f64[2,2] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@no_such_mesh, [{\"x\"}, {}]>"}
  s = f64[] parameter(1)
  b = f64[2,2] broadcast(s), dimensions={}
  ROOT m = f64[2,2] multiply(p, b)
})";

// Only NaNs give NaN, and far out all is one.
constexpr const char* kAllHalves = R"(HloModule all_halves
all { a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT c = pred[] and(a, b) }
ENTRY root {
  u = u16[65536] iota(), iota_dimension=0
  h = f16[65536] bitcast-convert(u)
  e = f16[65536] erf(h)
  t = f16[65536] tanh(h)
  hn = pred[65536] compare(h, h), direction=NE
  en = pred[65536] compare(e, e), direction=NE
  tn = pred[65536] compare(t, t), direction=NE
  same = pred[65536] compare(hn, en), direction=EQ
  same2 = pred[65536] compare(hn, tn), direction=EQ
  five = f16[] constant(5)
  fives = f16[65536] broadcast(five), dimensions={}
  one = f16[] constant(1)
  ones = f16[65536] broadcast(one), dimensions={}
  far = pred[65536] compare(h, fives), direction=GE
  near = pred[65536] not(far)
  e1 = pred[65536] compare(e, ones), direction=EQ
  t1 = pred[65536] compare(t, ones), direction=EQ
  ef = pred[65536] or(near, e1)
  tf = pred[65536] or(near, t1)
  x = pred[65536] and(same, same2)
  y = pred[65536] and(ef, tf)
  z = pred[65536] and(x, y)
  yes = pred[] constant(true)
  ROOT r = pred[] reduce(z, yes), dimensions={0}, to_apply=all
})";

// Views of arrays without elements, in kernels that have some to write.
constexpr const char* kOfNothing = R"(HloModule of_nothing
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY root {
  p = f32[1,0,2,1] parameter(0)
  t = f32[2,1,1,0] transpose(p), dimensions={2,0,3,1}
  r = f32[1,0] reshape(t)
  none = f32[0] constant({})
  dot = f32[1] dot(r, none), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  five = f32[] constant(5)
  pair = f32[2,0,3] reshape(t)
  total = f32[2,3] reduce(pair, five), dimensions={1}, to_apply=sum
  x = f32[1,3,0] reshape(t)
  k = f32[2,0,2] reshape(t)
  conv = f32[1,2,2] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f
  m = f32[3,0] reshape(t)
  edge = f32[3,2] pad(m, five), padding=0_0x1_1
  ROOT all = (f32[1], f32[2,3], f32[1,2,2], f32[3,2]) tuple(dot, total, conv, edge)
})";

INSTANTIATE_TEST_SUITE_P(
    Types, Cases,
    testing::Values(
        Case{"ASliceAtAnOddPlaceOfFourBits", nibbles("s4", "slice(c), slice={[3:8]}", 5), {kNibbles}, {"{0,1,2,5,6}"}},
        Case{"AStridedSliceOfFourBits", nibbles("s4", "slice(c), slice={[1:9:2]}", 4), {kNibbles}, {"{-7,0,2,6}"}},
        Case{"AReverseOfFourBits",
             nibbles("s4", "reverse(c), dimensions={0}", 9),
             {kNibbles},
             {"{7,6,5,2,1,0,-1,-7,-8}"}},
        Case{"ASliceOfUnsignedFourBits",
             nibbles("u4", "slice(c), slice={[3:8]}", 5),
             {"{0,1,2,3,8,9,14,15,7}"},
             {"{3,8,9,14,15}"}},
        Case{"ADilatedBaseHasHolesWhereTheWindowIsOne", dilated_base(6, 10), {}, {"{{3,-inf,3,-inf,3}}"}},
        Case{"ADilatedBaseHasHolesAtAnySize", dilated_base(96, 160), {}, {"{{3,-inf,3,-inf,3}}"}},
        Case{"AGroupedDilatedConvolutionFeedsItsOwnChannels",
             kPerChannel,
             {"{{{{1,10},{2,20},{3,30}},{{4,40},{5,50},{6,60}},{{7,70},{8,80},{9,90}}}}",
              "{{{{1,2,3,4}},{{1,2,3,4}}},{{{1,2,3,4}},{{1,2,3,4}}}}"},
             {"{{{{20,40,600,800}}}}"}},
        Case{"ShiftsPastTheWidthAreDefined",
             kFarShift,
             {"{32,100,-1,31}"},
             {"{0,0,0,-2147483648}", "{-1,-1,-1,0}", "{0,0,0,0}", "{0,0,0,-2147483648}", "{-1,-1,-1,0}", "{0,0,0,0}"}},
        Case{"ABarrierAReverseAndANarrowConvertFuse",
             kMirror,
             {"{1,2,3,4,5.5}"},
             {"{{-5,-4,-3,-2,-1},{-5,-4,-3,-2,-1},{-5,-4,-3,-2,-1}}"}},
        Case{"LayoutsOfTheBorderChangeNoValue",
             kColumnMajor,
             {"{{1,2,3},{4,5,6}}", "{{1,0},{0,1},{1,1}}"},
             {"{{4,5},{10,11}}", "{{1,4},{2,5},{3,6}}"}},
        Case{"AnEmptySliceIsPaddedWithTheValue",
             kEmptyCut,
             {"{{{1,1,1,1},{1,1,1,1},{1,1,1,1}},{{1,1,1,1},{1,1,1,1},{1,1,1,1}}}"},
             {"{{{9},{9}},{{9},{9}}}"}},
        Case{"AnEmptyArrayGoesThroughALoop", kHollowLoop, {}, {"3", "{ { }, { }, { } }"}},
        Case{"WhatIsMadeOfNoElementsIsWhatItStartsWith",
             kOfNothing,
             {"{{}}"},
             {"{0}", "{{5,5,5},{5,5,5}}", "{{{0,0},{0,0}}}", "{{5,5},{5,5},{5,5}}"}},
        Case{"FourBitArraysKeepTheirValues",
             kFourBits,
             {"{-8,-7,-1,0,1,6,7}", "{0,1,7,8,14,15,3}"},
             {"{-8,-7,-1,0,1,6,7}", "{-8,-6,6,8,15,21,10}"}},
        Case{"EightBitFloatsOverflowAsTheirFormatSays",
             kEightBitEdges,
             {"{448,464,465,-1000,inf,nan}"},
             {"{448,448,nan,nan,nan,nan}", "{448,448,448,-1024,inf,nan}"}},
        Case{"EightBitFloatsReachTheirGreatest",
             kEightBitEdges,
             {"{61440,57344,-57344,1,0.5,-0}"},
             {"{nan,nan,nan,1,0.5,-0}", "{inf,57344,-57344,1,0.5,-0}"}},
        Case{"ANanStaysOneInBf16", kQuiet, {"{2139095041,2147483647,4286578689}"}, {"{true,true,true}", "{0,0,1}"}},
        Case{"OneReplicaReducesToItself", kAlone, {"{1,2,3,4}"}, {"{1,2,3,4}"}},
        Case{"AttributesOfOthersAreCarried", kForeignMesh, {"{{1,2},{3,4}}", "3"}, {"{{3,6},{9,12}}"}},
        Case{"HalvesGiveNanForNansAlone", kAllHalves, {}, {"true"}}),
    name_of);

}  // namespace
}  // namespace hloom::cases
