#include <gmock/gmock.h>

#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::after;
using ::testing::HasSubstr;
using ::testing::Not;

// A loop of `trips` iterations that reads window i of an array in space 5, and works with it as `work` says.
std::string loop(std::string_view fetch, std::string_view work, int trips = 9) {
  return "HloModule m\nbody {\n"
         "q = (s32[], f32[300,100], f32[9,300,100]{2,1,0:S(5)}) parameter(0)\n"
         "i = s32[] get-tuple-element(q), index=0\nx = f32[300,100] get-tuple-element(q), index=1\n"
         "h = f32[9,300,100]{2,1,0:S(5)} get-tuple-element(q), index=2\n"
         "z = s32[] constant(0)\none = s32[] constant(1)\nj = s32[] add(i, one)\n" +
         std::string(fetch) + std::string(work) +
         "ROOT t = (s32[], f32[300,100], f32[9,300,100]{2,1,0:S(5)}) tuple(j, y, h)\n}\ncond {\n"
         "q = (s32[], f32[300,100], f32[9,300,100]{2,1,0:S(5)}) parameter(0)\ni = s32[] get-tuple-element(q), index=0\n"
         "n = s32[] constant(" + std::to_string(trips) + ")\nROOT c = pred[] compare(i, n), direction=LT\n}\nENTRY e {\n"
         "x = f32[300,100] parameter(0)\nh = f32[9,300,100]{2,1,0:S(5)} parameter(1)\nz = s32[] constant(0)\n"
         "t = (s32[], f32[300,100], f32[9,300,100]{2,1,0:S(5)}) tuple(z, x, h)\n"
         "l = (s32[], f32[300,100], f32[9,300,100]{2,1,0:S(5)}) while(t), condition=cond, body=body\n"
         "ROOT r = f32[300,100] get-tuple-element(l), index=1\n}\n";
}

constexpr std::string_view kFetch =
    "s = f32[1,300,100]{2,1,0:S(5)} dynamic-slice(h, i, z, z), dynamic_slice_sizes={1,300,100}\n"
    "w = f32[1,300,100] copy(s), backend_config={\"hloom\":{\"beside\":\"true\"}}\n";
constexpr std::string_view kWork = "m = f32[300,100] reshape(w)\ny = f32[300,100] subtract(x, m)\n";

TEST(FetchAhead, ALoopCarriesTheWindowOfItsNextIteration) {
  const std::string text = after("fetch-ahead", loop(kFetch, kWork));
  // The body's: of the next counter, and carried; what the iteration works with comes out of the state.
  EXPECT_THAT(text, HasSubstr("= f32[1,300,100] fusion(h, j, z.ahead, z.ahead), kind=kLoop"));
  EXPECT_THAT(text, HasSubstr("get-tuple-element = f32[1,300,100] get-tuple-element(q), index=3\n"));
  EXPECT_THAT(text, HasSubstr("m = f32[300,100] reshape(get-tuple-element)\n"));
  EXPECT_THAT(text, HasSubstr("ROOT t.2 = (s32[], f32[300,100], f32[9,300,100], f32[1,300,100]) tuple(j, y, h, w.ahead"));
  // The first one, before the loop.
  EXPECT_THAT(text, HasSubstr("fusion(h.1, z.1, z.ahead.1, z.ahead.1), kind=kLoop"));
}

TEST(FetchAhead, AWindowIsOneStepWhereNoLoopIsKnown) {
  const std::string text = after("fetch-ahead",
                                 "HloModule m\nENTRY e {\nh = f32[9,300,100]{2,1,0:S(5)} parameter(0)\ni = s32[] parameter(1)\n"
                                 "z = s32[] constant(0)\n" + std::string(kFetch) + "ROOT y = f32[1,300,100] negate(w)\n}\n");
  EXPECT_THAT(text, HasSubstr("ROOT w.1 = f32[1,300,100] copy(s"));
  EXPECT_THAT(text, HasSubstr("w.2 = f32[1,300,100] fusion(h, i, z, z), kind=kLoop, calls=w"));
}

// Each loop keeps its three leaves.
void expect_kept(const std::string& text) {
  EXPECT_THAT(after("fetch-ahead", text), Not(HasSubstr("index=3"))) << text;
}

TEST(FetchAhead, WhatDoesNotGoWithTheCounterStaysInItsIteration) {
  std::string fetch(kFetch);  // where the window lies depends on what the iteration before computed
  fetch.replace(fetch.find("(h, i"), 5, "(h, k");
  expect_kept(loop("f = f32[1,1] slice(x), slice={[0:1], [0:1]}\ng = f32[] reshape(f)\nk = s32[] convert(g)\n" + fetch, kWork));
  std::string changing = loop(kFetch, kWork);  // the array is another in each iteration
  changing.replace(changing.find("tuple(j, y, h)"), 14, "tuple(j, y, v)");
  changing.insert(changing.find("ROOT t"), "v = f32[9,300,100]{2,1,0:S(5)} negate(h)\n");
  expect_kept(changing);
}

TEST(FetchAhead, NothingIsFetchedAheadWithoutWorkBesideOrANextIteration) {
  expect_kept(loop(kFetch, "y = f32[300,100] reshape(w)\n"));
  expect_kept(loop(kFetch, kWork, 1));
}

TEST(FetchAhead, AScheduledLoopStaysAsItIs) {
  std::string text = loop(kFetch, kWork);
  text.replace(text.find("HloModule m"), 11, "HloModule m, is_scheduled=true");
  const auto module = testing::parse(text);
  ASSERT_TRUE(module);
  testing::run("fetch-ahead", *module);
  EXPECT_THAT(testing::body(*module), Not(HasSubstr("index=3")));
  EXPECT_THAT(testing::body(*module), HasSubstr("fusion(h, i, z, z), kind=kLoop"));
}

}  // namespace
}  // namespace hloom::passes
