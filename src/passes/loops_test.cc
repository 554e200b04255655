// simplify-loops, shrink-loops, simplify-indices.
#include "interp/interpret.h"
#include "passes/loop.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::after;
using testing::parse;

// A loop that counts leaf 0 from `from` by `step` (may be negative) while `direction` `limit` holds, in s8.
std::string counting(int from, int step, const std::string& direction, int limit) {
  return std::string("HloModule m\nbody { s = (s8[], s32[]) parameter(0)\n i = s8[] get-tuple-element(s), index=0\n") +
         " n = s32[] get-tuple-element(s), index=1\n c = s8[] constant(" + std::to_string(step) +
         ")\n j = s8[] add(i, c)\n" +
         " one = s32[] constant(1)\n m = s32[] add(n, one)\n ROOT t = (s8[], s32[]) tuple(j, m) }\n" +
         "condition { s = (s8[], s32[]) parameter(0)\n i = s8[] get-tuple-element(s), index=0\n l = s8[] constant(" +
         std::to_string(limit) + ")\n ROOT p = pred[] compare(i, l), direction=" + direction +
         " }\nENTRY e { a = s8[] constant(" + std::to_string(from) +
         ")\n x = s32[] parameter(0)\n t = (s8[], s32[]) tuple(a, x)\n ROOT w = (s8[], s32[]) while(t), "
         "condition=condition, body=body }\n";
}

// The number of iterations that the pass finds is that which the interpreter counts, wherever it finds one.
TEST(SimplifyLoops, CountsAsTheInterpreterDoes) {
  int found = 0;
  for (const int from : {-128, -3, 0, 1, 5, 120, 127})
    for (const int step : {-7, -1, 0, 1, 3, 100})
      for (const char* direction : {"LT", "LE", "GT", "GE", "EQ", "NE"})
        for (const int limit : {-128, -100, -3, 0, 5, 6, 127}) {
          const auto module = parse(counting(from, step, direction, limit));
          ASSERT_TRUE(module);
          const auto loop = Loop::of(*module->entry()->root());
          const auto counter = find_counter(*loop);
          if (!counter) continue;
          ++found;
          SCOPED_TRACE(std::to_string(from) + " by " + std::to_string(step) + " " + direction + " " +
                       std::to_string(limit));
          EXPECT_TRUE(counter->exact);
          hlo::Literal zero(Shape::scalar(DType::S32));
          const auto result = interp::interpret(*module, {&zero, 1}, {.max_steps = 10000});
          ASSERT_TRUE(result) << result.error().message();
          EXPECT_EQ(hlo::element_as_int64(result->elements()[1], 0), counter->trips);
          EXPECT_EQ(hlo::element_as_int64(result->elements()[0], 0), counter->final());
        }
  EXPECT_GT(found, 500);
}

TEST(SimplifyLoops, InlinesOneIterationAndDropsNone) {
  EXPECT_EQ(after("simplify-loops", counting(5, 1, "LT", 6)).find("while"), std::string::npos);
  EXPECT_EQ(after("simplify-loops", counting(6, 1, "LT", 6)),
            "a = s8[] constant(6)\nx = s32[] parameter(0)\nROOT t.1 = (s8[], s32[]) tuple(a, x)\n");
  EXPECT_NE(after("simplify-loops", counting(0, 1, "LT", 6)).find("while"), std::string::npos);
}

TEST(SimplifyLoops, WritesTheTripCount) {
  const auto module = parse(counting(0, 2, "LT", 7));
  testing::run("simplify-loops", *module);
  EXPECT_EQ(module->entry()->root()->annotations().decisions.at("trip_count"), "4");
}

constexpr const char* kCarry = R"(HloModule m
body {
  s = (s32[], f32[8], f32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  c = f32[] get-tuple-element(s), index=2
  j = s32[] get-tuple-element(s), index=3
  unread = f32[8] get-tuple-element(s), index=4
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  j2 = s32[] add(j, one)
  cs = f32[8] broadcast(c), dimensions={}
  jf = f32[] convert(j)
  js = f32[8] broadcast(jf), dimensions={}
  y = f32[8] multiply(x, cs)
  z = f32[8] add(y, js)
  more = f32[8] add(unread, x)
  ROOT t = (s32[], f32[8], f32[], s32[], f32[8]) tuple(i2, z, c, j2, more)
}
condition {
  s = (s32[], f32[8], f32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  c = f32[] constant(3)
  t = (s32[], f32[8], f32[], s32[], f32[8]) tuple(zero, x, c, zero, x)
  w = (s32[], f32[8], f32[], s32[], f32[8]) while(t), condition=condition, body=body
  r = f32[8] get-tuple-element(w), index=1
  k = f32[] get-tuple-element(w), index=2
  ROOT out = (f32[8], f32[]) tuple(r, k)
}
)";

TEST(ShrinkLoops, TakesOutWhatNeedNotGoRound) {
  const auto module = parse(kCarry);
  testing::run("shrink-loops", *module);
  testing::run("remove-dead", *module);
  const hlo::Instruction* loop = nullptr;
  for (const hlo::Instruction& i : module->entry()->instructions())
    if (i.opcode() == hlo::Opcode::While) loop = &i;
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(to_string(loop->shape(), false), "(s32[], f32[8])");
  EXPECT_EQ(testing::run("shrink-loops", *module), Changed::No);
}

TEST(ShrinkLoops, KeepsLeavesThatPartWaysLater) {
  // Both start at 0 and gain what the other is: equal so far; the third gains 1.
  const std::string text = R"(HloModule m
body {
  s = (s32[], s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1
  c = s32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  a2 = s32[] add(a, c)
  b2 = s32[] add(b, a)
  c2 = s32[] add(c, one)
  ROOT t = (s32[], s32[], s32[]) tuple(a2, b2, c2)
}
condition {
  s = (s32[], s32[], s32[]) parameter(0)
  c = s32[] get-tuple-element(s), index=2
  n = s32[] constant(5)
  ROOT p = pred[] compare(c, n), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  t = (s32[], s32[], s32[]) tuple(zero, zero, zero)
  ROOT w = (s32[], s32[], s32[]) while(t), condition=condition, body=body
}
)";
  const auto before = parse(text), shrunk = parse(text);
  testing::run("shrink-loops", *shrunk);
  EXPECT_EQ(*interp::interpret(*shrunk, {}), *interp::interpret(*before, {}));
}

TEST(SimplifyIndices, KnowsTheRangeOfACounter) {
  const auto module = parse(R"(HloModule m
body {
  s = (s32[], f32[9,4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[9,4] get-tuple-element(s), index=1
  a = f32[4] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  nine = s32[] constant(9)
  is_negative = pred[] compare(i, zero), direction=LT
  wrapped = s32[] add(i, nine)
  at = s32[] select(is_negative, wrapped, i)
  row = f32[1,4] dynamic-slice(x, at, zero), dynamic_slice_sizes={1,4}
  flat = f32[4] reshape(row)
  a2 = f32[4] add(a, flat)
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  ROOT t = (s32[], f32[9,4], f32[4]) tuple(i2, x, a2)
}
condition {
  s = (s32[], f32[9,4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[9,4] parameter(0)
  a = f32[4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[9,4], f32[4]) tuple(zero, x, a)
  ROOT w = (s32[], f32[9,4], f32[4]) while(t), condition=condition, body=body
}
)");
  ASSERT_TRUE(run_standard(*module, testing::checking()));
  const std::string left = testing::body(*module);
  EXPECT_EQ(left.find("select"), std::string::npos) << left;
  EXPECT_NE(left.find("dynamic-slice(x, i, zero"), std::string::npos) << left;
}

TEST(SimplifyIndices, KnowsNothingOfACounterThatMayWrap) {
  const std::string left = after("simplify-indices", R"(HloModule m
body {
  s = (s8[], s8[]) parameter(0)
  i = s8[] get-tuple-element(s), index=0
  n = s8[] get-tuple-element(s), index=1
  one = s8[] constant(1)
  i2 = s8[] add(i, one)
  zero = s8[] constant(0)
  low = s8[] maximum(i2, zero)
  ROOT t = (s8[], s8[]) tuple(i2, low)
}
condition {
  s = (s8[], s8[]) parameter(0)
  i = s8[] get-tuple-element(s), index=0
  n = s8[] constant(-100)
  ROOT p = pred[] compare(i, n), direction=NE
}
ENTRY e {
  zero = s8[] constant(0)
  t = (s8[], s8[]) tuple(zero, zero)
  ROOT w = (s8[], s8[]) while(t), condition=condition, body=body
}
)");
  EXPECT_NE(left.find("maximum"), std::string::npos);
}

}  // namespace
}  // namespace hloom::passes
