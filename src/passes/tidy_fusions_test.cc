#include "passes/tidy_fusions.h"

#include "hlo/verify.h"
#include "passes/pipeline.h"
#include "passes/testing.h"
#include "text/print.h"

namespace hloom::passes {
namespace {

using testing::parse;

TEST(TidyFusions, OperandsThatAreNotReadGo) {
  const auto module = parse(R"(HloModule m
f {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  n = f32[4] negate(a)
  ROOT s = f32[4] subtract(b, n)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT r = f32[4] fusion(x, y), kind=kLoop, calls=f
})");
  hlo::Instruction* fusion = module->entry()->root();
  hlo::Computation* body = fusion->called(0);
  body->set_root(body->parameter(1));
  tidy_fusions(*module);
  EXPECT_TRUE(hlo::check_module(*module));
  const hlo::Instruction& left = *module->entry()->root();
  EXPECT_EQ(left.name(), "r");
  ASSERT_EQ(left.num_operands(), 1);
  EXPECT_EQ(left.operand(0)->name(), "y");
  EXPECT_EQ(left.called(0)->num_instructions(), 1);
}

// A call that is inlined twice copies the fusion inside.
TEST(TidyFusions, EachFusionHasAComputationOfItsOwn) {
  const auto module = parse(R"(HloModule m
f {
  a = f32[4] parameter(0)
  ROOT s = f32[4] add(a, a)
}
g {
  a = f32[4] parameter(0)
  ROOT s = f32[4] fusion(a), kind=kLoop, calls=f
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] call(x), to_apply=g
  ROOT z = f32[4] call(y), to_apply=g
})");
  RunOptions options;
  options.verify = true;
  const auto ran = run_standard(*module, options);
  EXPECT_TRUE(ran) << ran.error().message();
}

TEST(TidyFusions, PassesMayLeaveDeadInstructionsInsideFusions) {
  const auto module = parse(R"(HloModule m
f {
  a = f32[4,5] parameter(0)
  t = f32[5,4] transpose(a), dimensions={1,0}
  u = f32[4,5] transpose(t), dimensions={1,0}
  ROOT s = f32[4,5] add(u, a)
}
ENTRY e {
  x = f32[4,5] parameter(0)
  ROOT r = f32[4,5] fusion(x), kind=kLoop, calls=f
})");
  RunOptions options;
  options.verify = true;
  const auto ran = run_standard(*module, options);
  EXPECT_TRUE(ran) << ran.error().message();
}

}  // namespace
}  // namespace hloom::passes
