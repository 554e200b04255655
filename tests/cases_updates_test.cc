// Window updates, loops, branches, indices: what is written, where, and in which order.
#include <algorithm>

#include "cases.h"

namespace hloom::cases {
namespace {

using arrays::Tolerance;

constexpr const char* kAddS32 =
    "sum { a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT s = s32[] add(a, b) }\n";

// A loop whose counter is element 0 of `state` and runs from 0 to `trips`.
std::string condition(const std::string& state, int trips) {
  return "cond { s = " + state + " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(" +
         std::to_string(trips) + ")\n  ROOT c = pred[] compare(i, n), direction=LT }\n";
}

std::string shifted_update(const std::string& header) {
  return "HloModule slide_down" + header + R"(
ENTRY root {
  x = s32[6,1,1] parameter(0)
  one = s32[] constant(1)
  ones = s32[6,1,1] broadcast(one), dimensions={}
  base = s32[6,1,1] add(x, ones)
  head = s32[5,1,1] slice(base), slice={[0:5], [0:1], [0:1]}
  zero = s32[] constant(0)
  dus = s32[6,1,1] dynamic-update-slice(base, head, one, zero, zero)
  ROOT out = s32[1,6,1] reshape(dus)
})";
}

std::string gate() {
  const std::string state = "(s32[], f32[])";
  return "HloModule gate\ngrow { x = f32[] parameter(0)\n  k = f32[] constant(5)\n  ROOT y = f32[] multiply(x, k) }\n"
         "hold { ROOT x = f32[] parameter(0) }\n" +
         condition(state, 6) + R"(body {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[] get-tuple-element(s), index=1
  three = s32[] constant(3)
  p = pred[] compare(i, three), direction=LT
  v2 = f32[] conditional(p, v, v), true_computation=grow, false_computation=hold
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  ROOT t = (s32[], f32[]) tuple(i2, v2)
}
ENTRY root {
  z = s32[] constant(0)
  x = f32[] parameter(0)
  init = (s32[], f32[]) tuple(z, x)
  w = (s32[], f32[]) while(init), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=1
})";
}

std::string swapped_carries() {
  const std::string state = "(s32[], s32[4], s32[4])";
  return "HloModule swap_pair\n" + condition(state, 5) + R"(body {
  s = (s32[], s32[4], s32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = s32[4] get-tuple-element(s), index=1
  b = s32[4] get-tuple-element(s), index=2
  ab = s32[4] add(a, b)
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  ROOT t = (s32[], s32[4], s32[4]) tuple(i2, b, ab)
}
ENTRY root {
  z = s32[] constant(0)
  p = s32[4] parameter(0)
  init = (s32[], s32[4], s32[4]) tuple(z, p, p)
  ROOT w = (s32[], s32[4], s32[4]) while(init), condition=cond, body=body
})";
}

std::string doubling(int trips, int start) {
  const std::string state = "(s32[], f32[])";
  return "HloModule doubling\n" + condition(state, trips) + R"(body {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = f32[] get-tuple-element(s), index=1
  k2 = f32[] add(k, k)
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  ROOT t = (s32[], f32[]) tuple(i2, k2)
}
ENTRY root {
  z = s32[] constant()" +
         std::to_string(start) + R"()
  k0 = f32[] constant(3)
  init = (s32[], f32[]) tuple(z, k0)
  w = (s32[], f32[]) while(init), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=1
})";
}

std::string clamped_update(const std::string& type) {
  return "HloModule clamp_me\nENTRY root {\n  cache = f32[2,8] parameter(0)\n  tok = f32[2,3] parameter(1)\n  at = " +
         type + "[] parameter(2)\n  z = " + type +
         "[] constant(0)\n"
         "  ROOT u = f32[2,8] dynamic-update-slice(cache, tok, z, at)\n}";
}
const std::vector<std::string> kZeros = {"{{0,0,0,0,0,0,0,0},{0,0,0,0,0,0,0,0}}", "{{1,2,3},{4,5,6}}"};
std::vector<std::string> at(const std::string& place) { return {kZeros[0], kZeros[1], place}; }

// The start index' type is too narrow for the last place of the array.
std::string narrow_index() {
  return R"(HloModule narrow_bound
ENTRY root {
  t = s32[1000] iota(), iota_dimension=0
  i = s8[] parameter(0)
  ROOT d = s32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}
})";
}

std::string row_roll(const std::string& first, const std::string& second) {
  return R"(HloModule roll
ENTRY root {
  m = s32[2,5] parameter(0)
  row = s32[1,5] slice(m), slice={[1:2], [0:5]}
  a = s32[1,)" +
         std::to_string(5 - std::stoi(first)) + "] slice(row), slice={[0:1], [" + first + R"(:5]}
  b = s32[1,)" +
         second + "] slice(row), slice={[0:1], [0:" + second + R"(]}
  rolled = s32[1,5] concatenate(a, b), dimensions={1}
  one = s32[] constant(1)
  zero = s32[] constant(0)
  ROOT u = s32[2,5] dynamic-update-slice(m, rolled, one, zero)
})";
}

std::string scatter_rows() {
  return std::string("HloModule toss\n") + kAddS32 + R"(ENTRY root {
  m = s32[4,3] parameter(0)
  ix = s32[4,1] parameter(1)
  u = s32[4,3] parameter(2)
  ROOT r = s32[4,3] scatter(m, ix, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
})";
}

// Windows overlap, and one's elements stand between the other's: the last element in row-major order stays.
constexpr const char* kOverlappingWindows = R"(HloModule overlap
second { a = s32[] parameter(0)
  ROOT b = s32[] parameter(1) }
ENTRY root {
  m = s32[4] parameter(0)
  ix = s32[2,1] constant({{0},{1}})
  u = s32[3,2] parameter(1)
  ROOT r = s32[4] scatter(m, ix, u), update_window_dims={0}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second
})";

constexpr const char* kBadBranch = R"(HloModule dead_branch
bad { x = f32[] parameter(0)
  tab = f32[3] constant({10, 20, 30})
  i = s32[] constant(-5)
  d = f32[1] dynamic-slice(tab, i), dynamic_slice_sizes={1}
  v = f32[] reshape(d)
  ROOT y = f32[] add(x, v) }
good { ROOT x = f32[] parameter(0) }
ENTRY root {
  p = pred[] constant(true)
  x = f32[] parameter(0)
  ROOT c = f32[] conditional(p, x, x), true_computation=bad, false_computation=good
})";

constexpr const char* kManyOnes = R"(HloModule headcount
sum { a = s64[] parameter(0)
  b = s64[] parameter(1)
  ROOT s = s64[] add(a, b) }
ENTRY root {
  one = s64[] parameter(0)
  z = s64[] constant(0)
  b = s64[65536,65536] broadcast(one), dimensions={}
  ROOT n = s64[] reduce(b, z), dimensions={0,1}, to_apply=sum
})";

constexpr const char* kShuffled = R"(HloModule shuffled
inner { b = f32[2,1] parameter(1)
  a = f32[2,1] parameter(0)
  ROOT d = f32[2,1] subtract(a, b) }
ENTRY root {
  q = f32[2,1] parameter(1)
  p = f32[2,1] parameter(0)
  ROOT c = f32[2,1] call(p, q), to_apply=inner
})";

constexpr const char* kCustomFusion = R"(HloModule replay
inside { u = f32[2,2] parameter(0)
  ROOT d = f32[2,2] dot(u, u), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY root {
  p = f32[2,2] parameter(0)
  f = f32[2,2] fusion(p), kind=kCustom, calls=inside, backend_config={"fusion_config":{"kind":"__somebody_elses_library"}}
  ROOT s = f32[2,2] add(f, p)
})";

// A fusion that came with the program: one of its results updates what it computed itself.
constexpr const char* kUpdateInsideAFusion = R"(HloModule given, is_scheduled=true
f { x = s32[4] parameter(0)
  base = s32[4]{0} add(x, x)
  seven = s32[1]{0} constant({7})
  two = s32[] constant(2)
  n = s32[4]{0} negate(x)
  u = s32[4]{0} dynamic-update-slice(base, seven, two)
  ROOT t = (s32[4]{0}, s32[4]{0}) tuple(n, u) }
ENTRY root {
  x = s32[4]{0} parameter(0)
  ROOT r = (s32[4]{0}, s32[4]{0}) fusion(x), kind=kLoop, calls=f
})";

// The updates are the array that is updated, and all go to one place.
constexpr const char* kScatterOfItself = R"(HloModule itself
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
ENTRY root {
  m = s32[2] parameter(0)
  n = s32[2] negate(m)
  one = s32[] constant(1)
  ix = s32[2,1] broadcast(one), dimensions={}
  ROOT r = s32[2] scatter(n, ix, n), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
})";

// All updates go to the one element there is.
constexpr const char* kScatterIntoOne = R"(HloModule one
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
ENTRY root {
  m = s32[1] parameter(0)
  ix = s32[5,7,1] parameter(1)
  u = s32[5,7] parameter(2)
  ROOT r = s32[1] scatter(m, ix, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=sum
})";

// A fusion and a sum apply computations that are alike.
constexpr const char* kFusionLikeASum = R"(HloModule alike
f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
ENTRY root {
  x = s32[3] parameter(0)
  z = s32[] constant(1)
  y = s32[] fusion(z, z), kind=kLoop, calls=f
  ROOT r = s32[] reduce(x, y), dimensions={0}, to_apply=sum
})";

// The left side's dimensions are batch, rows of its own, and those that the dot sums.
constexpr const char* kWideDot = R"(HloModule wide
sum { a = s64[] parameter(0)
  b = s64[] parameter(1)
  ROOT s = s64[] add(a, b) }
ENTRY root {
  a = s64[1,2,16,4] parameter(0)
  b = s64[13,11,4] parameter(1)
  d = s64[1,2,16,13,11] dot(a, b), lhs_contracting_dims={3}, rhs_contracting_dims={2}
  z = s64[] constant(0)
  ROOT n = s64[] reduce(d, z), dimensions={0,1,2,3,4}, to_apply=sum
})";

std::string ones(int n) {
  std::string text;
  for (int k = 0; k < n; ++k) text += text.empty() ? "1" : ",1";
  return "{" + text + "}";
}
std::string nested(const std::vector<int>& dims, std::size_t d = 0);
std::string zeros(const std::vector<int>& dims) {
  std::string text = nested(dims);
  std::ranges::replace(text, '1', '0');
  return text;
}
std::string nested(const std::vector<int>& dims, std::size_t d) {
  if (d + 1 == dims.size()) return ones(dims[d]);
  std::string text;
  for (int k = 0; k < dims[d]; ++k) text += (text.empty() ? "" : ",") + nested(dims, d + 1);
  return "{" + text + "}";
}

INSTANTIATE_TEST_SUITE_P(
    Updates, Cases,
    testing::Values(
        Case{"AnUpdateByTheArrayShiftedReadsTheOldArray",
             shifted_update(""),
             {"{{{0}},{{1}},{{2}},{{3}},{{4}},{{5}}}"},
             {"{{{1},{1},{2},{3},{4},{5}}}"}},
        Case{"AnUpdateByTheArrayShiftedReadsTheOldArrayOfADonatedParameter",
             shifted_update(", input_output_alias={ {}: (0, {}, may-alias) }"),
             {"{{{0}},{{1}},{{2}},{{3}},{{4}},{{5}}}"},
             {"{{{1},{1},{2},{3},{4},{5}}}"}},
        Case{"ARowRolledIntoItselfReadsTheOldRow",
             row_roll("2", "2"),
             {"{{0,1,2,3,4},{5,6,7,8,9}}"},
             {"{{0,1,2,3,4},{7,8,9,5,6}}"}},
        Case{"ARowRolledTheOtherWayReadsTheOldRow",
             row_roll("4", "4"),
             {"{{0,1,2,3,4},{5,6,7,8,9}}"},
             {"{{0,1,2,3,4},{9,5,6,7,8}}"}},
        Case{"ABranchInALoopIsTakenByTheCounter", gate(), {"2"}, {"250"}},
        Case{"SwappedCarriesKeepTheirValues", swapped_carries(), {"{1,1,2,3}"}, {"5", "{8,8,16,24}", "{13,13,26,39}"}},
        Case{"ACarryThatStartsConstantIsNoConstant", doubling(4, 0), {}, {"48"}},
        Case{"ALoopOfNoTripsGivesItsStart", doubling(0, 0), {}, {"3"}},
        Case{"ALoopThatStartsAboveItsBoundGivesItsStart", doubling(4, 9), {}, {"3"}},
        Case{"AnUpdatePastTheEndIsClamped", clamped_update("s32"), at("7"), {"{{0,0,0,0,0,1,2,3},{0,0,0,0,0,4,5,6}}"}},
        Case{"AnUpdateBeforeTheStartIsClamped",
             clamped_update("s32"),
             at("-9"),
             {"{{1,2,3,0,0,0,0,0},{4,5,6,0,0,0,0,0}}"}},
        Case{"AnUpdateAtTheLargestIndexIsClamped",
             clamped_update("s32"),
             at("2147483647"),
             {"{{0,0,0,0,0,1,2,3},{0,0,0,0,0,4,5,6}}"}},
        Case{"AnUpdateAtAHugeUnsignedIndexIsClamped",
             clamped_update("u64"),
             at("18446744073709551615"),
             {"{{0,0,0,0,0,1,2,3},{0,0,0,0,0,4,5,6}}"}},
        Case{"AClampIsNotNarrowedToTheIndexType", narrow_index(), {"127"}, {"{127,128}"}},
        Case{"ScatterDropsWhatIsOutside",
             scatter_rows(),
             {"{{0,0,0},{0,0,0},{0,0,0},{0,0,0}}", "{{-1},{1},{4},{1}}", "{{1,1,1},{1,1,1},{1,1,1},{1,1,1}}"},
             {"{{0,0,0},{2,2,2},{0,0,0},{0,0,0}}"}},
        Case{"ScatterAppliesUpdatesInRowMajorOrder",
             kOverlappingWindows,
             {"{0,0,0,0}", "{{1,2},{3,4},{5,6}}"},
             {"{1,3,5,6}"}},
        Case{"ABadIndexInABranchIsFoldedAsItWouldRun", kBadBranch, {"1"}, {"11"}},
        Case{"ASumOfManyCountsPast32Bits", kManyOnes, {"1"}, {"4294967296"}, Tolerance::exact(), false},
        Case{"ParametersMayBeListedInAnyOrder", kShuffled, {"{{5},{7}}", "{{1},{2}}"}, {"{{4},{5}}"}},
        Case{"AnUnknownCustomFusionMeansItsComputation", kCustomFusion, {"{{1,2},{3,4}}"}, {"{{8,12},{18,26}}"}},
        Case{"AnUpdateInsideAGivenFusionKeepsItsBase",
             kUpdateInsideAFusion,
             {"{1,2,3,4}"},
             {"{-1,-2,-3,-4}", "{2,4,7,8}"}},
        Case{"AScatterOfAnArrayIntoItselfReadsTheOldArray", kScatterOfItself, {"{5,7}"}, {"{-5,-19}"}},
        Case{"AScatterIntoOneElementAddsAllUpdates",
             kScatterIntoOne,
             {"{3}", nested({5, 7, 1}, 0), nested({5, 7})},
             {"{3}"}},
        Case{"AScatterIntoOneElementAddsAllUpdatesInside",
             kScatterIntoOne,
             {"{3}", zeros({5, 7, 1}), nested({5, 7})},
             {"{38}"}},
        Case{"AFusionLikeASumKeepsItsOwnComputation", kFusionLikeASum, {"{1,2,3}"}, {"8"}},
        Case{"ADotOfManyRowDimensionsSumsThemAll", kWideDot, {nested({1, 2, 16, 4}), nested({13, 11, 4})}, {"18304"}}),
    name_of);

}  // namespace
}  // namespace hloom::cases
