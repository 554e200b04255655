// What the comparison with the interpreter finds, and what it leaves open.
#include "compiler/agreement.h"

#include <gtest/gtest.h>

#include <limits>

#include "compiler/exact_results.h"
#include "compiler/read_program.h"

namespace hloom::compiler {
namespace {

std::unique_ptr<hlo::Module> parse(std::string_view text) {
  auto module = read_program(text, {});
  if (!module) ADD_FAILURE() << module.error().message();
  return module ? *std::move(module) : nullptr;
}

hlo::Literal floats(std::vector<float> values) {
  hlo::Literal literal(Shape::array(DType::F32, {static_cast<std::int64_t>(values.size())}));
  std::ranges::copy(values, literal.mutable_data<float>().begin());
  return literal;
}

constexpr std::string_view kSums = R"(HloModule sums
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  s = f32[] reduce(x, z), dimensions={0}, to_apply=add
  e = f32[4] exponential(x)
  b = u32[4] bitcast-convert(x)
  n = f32[4] negate(x)
  ROOT r = (f32[], f32[4], u32[4], f32[4]) tuple(s, e, b, n)
})";

std::vector<bool> exact_of(std::string_view text, std::vector<hlo::Literal> arguments) {
  const auto results = exact_results(*parse(text), std::vector<std::vector<hlo::Literal>>{std::move(arguments)});
  EXPECT_TRUE(results);
  return results ? results->exact : std::vector<bool>();
}

TEST(ExactResults, SumsAreExactForSmallIntegersOnly) {
  using Marks = std::vector<bool>;
  EXPECT_EQ(exact_of(kSums, {floats({1, -2, 3, 4})}), (Marks{true, false, true, true}));
  EXPECT_EQ(exact_of(kSums, {floats({1, 0.1F, 3, 4})}), (Marks{false, false, true, true}));
  EXPECT_EQ(exact_of(kSums, {floats({1, 0x1p24F, 3, 4})}), (Marks{false, false, true, true}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(exact_of(kSums, {floats({1, nan, 3, 4})}), (Marks{false, false, false, true}));
}

TEST(ExactResults, WhatDependsOnAFunctionThroughALoopIsOpen) {
  const std::vector<bool> exact = exact_of(R"(HloModule loop
cond { s = (s32[], f32[2], f32[2], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[2], f32[2], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[2] get-tuple-element(s), index=1
  b = f32[2] get-tuple-element(s), index=2
  k = s32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = f32[2] tanh(a)
  ROOT r = (s32[], f32[2], f32[2], s32[]) tuple(j, t, a, k) }
ENTRY e {
  x = f32[2] parameter(0)
  z = s32[] constant(0)
  init = (s32[], f32[2], f32[2], s32[]) tuple(z, x, x, z)
  ROOT w = (s32[], f32[2], f32[2], s32[]) while(init), condition=cond, body=body
})",
                                           {floats({1, 2})});
  EXPECT_EQ(exact, (std::vector<bool>{true, false, false, true}));
}

// Device 0 gets a function's value from device 1, and a moved one by another channel.
TEST(ExactResults, WhatAnotherDeviceSentIsAsOpenAsItWasThere) {
  const auto module = parse(R"(HloModule sent, num_partitions=2
ENTRY e {
  x = f32[2] parameter(0)
  t = f32[2] tanh(x)
  a = token[] after-all()
  sa = (f32[2], u32[], token[]) send(t, a), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}
  r1 = (f32[2], u32[], token[]) recv(a), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}
  d1 = (f32[2], token[]) recv-done(r1), channel_id=1, control-predecessors={sa}
  e1 = token[] send-done(sa), channel_id=1
  sb = (f32[2], u32[], token[]) send(x, a), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}
  r2 = (f32[2], u32[], token[]) recv(a), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}
  d2 = (f32[2], token[]) recv-done(r2), channel_id=2, control-predecessors={sb}
  e2 = token[] send-done(sb), channel_id=2
  y = f32[2] get-tuple-element(d1), index=0
  z = f32[2] get-tuple-element(d2), index=0
  ROOT r = (f32[2], f32[2]) tuple(y, z)
})");
  const std::vector<std::vector<hlo::Literal>> arguments{{floats({1, 2})}, {floats({3, 4})}};
  const auto results = exact_results(*module, arguments);
  ASSERT_TRUE(results) << results.error().message();
  EXPECT_EQ(results->exact, (std::vector<bool>{false, true}));
}

// The caller's rounding mode and flushing of denormals change neither what is folded nor what runs.
TEST(Agreement, HoldsInAnotherFloatMode) {
  const Agreement agreement;
  const auto module = parse(R"(HloModule modes
ENTRY e {
  x = f32[2] parameter(0)
  third = f32[2] constant({1, 7e-40})
  three = f32[2] constant({3, 3})
  folded = f32[2] divide(third, three)
  f = f32[2] exponential(folded)
  run = f32[2] divide(x, three)
  ROOT r = (f32[2], f32[2], f32[2]) tuple(folded, run, f)
})");
  const auto difference = agreement.difference(*module, std::vector{floats({1, 0x1p-130F})});
  ASSERT_TRUE(difference) << difference.error().message();
  EXPECT_EQ(*difference, std::nullopt);
}

}  // namespace
}  // namespace hloom::compiler
