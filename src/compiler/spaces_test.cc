// Programs with memory spaces and splits in their layouts run as if they had none.
#include <gmock/gmock.h>

#include "hloom/executable.h"

namespace hloom::compiler {
namespace {

constexpr const char* kOffload = R"(HloModule m, entry_computation_layout={(f32[40]{0:S(5)}, f32[40]{0})->(f32[40]{0:S(5)}, f32[40]{0})}
body {
  p = (s32[], f32[40]{0:S(5)}, f32[40]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f32[40]{0:S(5)} get-tuple-element(p), index=1
  v = f32[40]{0} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  hd = f32[40]{0} copy(h)
  w = f32[40]{0:SC(0:16)} add(v, hd)
  nh = f32[40]{0:S(5)} custom-call(w), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true, frontend_attributes={_xla_buffer_placement="pinned_host"}
  ROOT t = (s32[], f32[40]{0:S(5)}, f32[40]{0}) tuple(j, nh, w)
}
cond {
  p = (s32[], f32[40]{0:S(5)}, f32[40]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[40]{0:S(5)} parameter(0)
  y = f32[40]{0} parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[40]{0:S(5)}, f32[40]{0}) tuple(z, x, y)
  l = (s32[], f32[40]{0:S(5)}, f32[40]{0}) while(t), condition=cond, body=body
  h = f32[40]{0:S(5)} get-tuple-element(l), index=1
  v = f32[40]{0} get-tuple-element(l), index=2
  cs = (f32[40]{0:S(2)}, f32[40]{0}, u32[]) copy-start(v)
  cd = f32[40]{0:S(2)} copy-done(cs)
  k = f32[2]{0:S(3)} constant({1, 2})
  n = f32[40]{0:S(1)} reverse(cd), dimensions={0}
  m = f32[40]{0:S(2)} dynamic-update-slice(n, k, z)
  o = f32[40]{0} reverse(m), dimensions={0}
  ROOT r = (f32[40]{0:S(5)}, f32[40]{0}) tuple(h, o)
})";

std::vector<float> run(std::string text, bool with_places) {
  if (!with_places)
    for (const char* place : {":S(1)", ":S(2)", ":S(3)", ":S(5)", ":SC(0:16)"})
      for (std::size_t at; (at = text.find(place)) != std::string::npos;) text.erase(at, std::string(place).size());
  const auto program = Executable::compile(text);
  EXPECT_TRUE(program) << program.error().message();
  if (!program) return {};
  std::vector<float> x(40), y(40), both(80);
  for (std::size_t n = 0; n < 40; ++n) {
    x[n] = static_cast<float>(n) / 7;
    y[n] = 3 - x[n];
  }
  const auto bytes = [](float* p) { return std::span(reinterpret_cast<std::byte*>(p), 160); };
  const std::vector<std::span<std::byte>> in = {bytes(x.data()), bytes(y.data())},
                                          out = {bytes(both.data()), bytes(both.data() + 40)};
  const auto done = program->run_into(in, out);
  EXPECT_TRUE(done) << done.error().message();
  return both;
}

TEST(Spaces, ProgramsRunAsIfTheyHadNone) { EXPECT_EQ(run(kOffload, true), run(kOffload, false)); }

TEST(Spaces, WhatIsWrittenMayNotBeWhereConstantsAre) {
  const auto program = Executable::compile("HloModule m\nENTRY e { x = f32[8] parameter(0) y = f32[8]{0:S(3)} negate(x) ROOT z = f32[8] abs(y) }");
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message(), testing::HasSubstr("y: a negate writes its result, and memory space 3"));
}

}  // namespace
}  // namespace hloom::compiler
