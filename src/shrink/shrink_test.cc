// Small programs keep the fault, verify at each step, and no step is left.
#include "shrink/shrink.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "generate/generate.h"
#include "hlo/verify.h"
#include "interp/interpret.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::shrink {
namespace {

using hlo::Opcode;

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = text::parse_module(text);
  if (!module) ADD_FAILURE() << module.error().message() << "\n" << text;
  return module ? *std::move(module) : nullptr;
}

// Whether the result needs an instruction of this opcode.
bool has(const hlo::Instruction& i, Opcode opcode, std::unordered_set<const hlo::Instruction*>& seen) {
  if (!seen.insert(&i).second) return false;
  if (i.opcode() == opcode) return true;
  for (const hlo::Instruction* operand : i.operands())
    if (has(*operand, opcode, seen)) return true;
  for (const hlo::Computation* c : i.called())
    if (has(*c->root(), opcode, seen)) return true;
  return false;
}
bool has(const hlo::Module& module, Opcode opcode) {
  std::unordered_set<const hlo::Instruction*> seen;
  return has(*module.entry()->root(), opcode, seen);
}

std::int64_t size(const hlo::Module& module) {
  std::int64_t n = 0;
  for (const hlo::Computation& c : module.computations()) n += c.num_instructions();
  return n;
}

// Random programs, with the presence of an opcode in the place of a fault.
TEST(Shrink, LeavesLittleButTheFault) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Program program{generate::module(seed), {}, true};
    program.arguments = generate::arguments(*program.module, seed);
    if (!has(*program.module, Opcode::Transpose)) continue;
    ++found;
    const Result small = shrink(std::move(program), [](const Program& p) {
      EXPECT_TRUE(hlo::check_module(*p.module));
      interp::Options options;
      options.max_steps = 20'000;  // a smaller number may make a loop endless
      const auto ran = interp::interpret(*p.module, p.arguments, options);
      if (!ran && ran.error().code() == Code::ResourceExhausted) return false;
      EXPECT_TRUE(ran) << ran.error().message() << text::print(*p.module);
      return has(*p.module, Opcode::Transpose);
    });
    EXPECT_TRUE(small.is_minimal) << seed;
    EXPECT_LE(size(*small.program.module), 4) << seed << "\n" << text::print(*small.program.module);
    EXPECT_EQ(small.program.module->num_computations(), 1) << seed << "\n" << text::print(*small.program.module);
  }
  EXPECT_GE(found, 5);
}

TEST(Shrink, DimensionsConstantsAndDonationsGo) {
  const auto module = parse(
      R"(HloModule m, input_output_alias={ {0}: (0, {}, must-alias) }, entry_computation_layout={(f32[96,130]{0,1}, s32[])->(f32[96,130]{0,1}, s32[])}
ENTRY e {
  x = f32[96,130]{0,1} parameter(0)
  i = s32[] parameter(1)
  k = s32[] constant(77)
  j = s32[] add(i, k)
  r = f32[96,130]{1,0} reverse(x), dimensions={1}
  n = f32[96,130]{1,0} negate(r)
  ROOT t = (f32[96,130]{1,0}, s32[]) tuple(n, j)
})");
  const Result small =
      shrink({module->clone(), {}, false}, [](const Program& p) { return has(*p.module, Opcode::Reverse); });
  EXPECT_EQ(text::print(*small.program.module, text::PrintOptions::short_parsable()),
            R"(HloModule m, entry_computation_layout={(f32[1,1]{1,0})->f32[1,1]{1,0}}

ENTRY e {
  x = f32[1,1]{1,0} parameter(0)
  ROOT r = f32[1,1]{1,0} reverse(x), dimensions={1}
}
)");
}

TEST(Shrink, LoopsLoseCarriesAndBranchesGo) {
  const auto module = parse(R"(HloModule m
grow {
  x = f32[8] parameter(0)
  ROOT y = f32[8] exponential(x)
}
hold {
  ROOT x = f32[8] parameter(0)
}
cond {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(40)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  w = f32[8] get-tuple-element(s), index=2
  three = s32[] constant(3)
  p = pred[] compare(i, three), direction=LT
  v2 = f32[8] conditional(p, v, v), true_computation=grow, false_computation=hold
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  ROOT t = (s32[], f32[8], f32[8]) tuple(i2, v2, w)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  y = f32[8] negate(x)
  init = (s32[], f32[8], f32[8]) tuple(z, x, y)
  l = (s32[], f32[8], f32[8]) while(init), condition=cond, body=body
  v = f32[8] get-tuple-element(l), index=1
  w = f32[8] get-tuple-element(l), index=2
  ROOT r = f32[8] add(v, w)
})");
  const Result small = shrink({module->clone(), {}, false}, [](const Program& p) {
    return has(*p.module, Opcode::While) && has(*p.module, Opcode::Exponential);
  });
  EXPECT_FALSE(has(*small.program.module, Opcode::Conditional));
  EXPECT_FALSE(has(*small.program.module, Opcode::Negate));
  EXPECT_LE(size(*small.program.module), 14) << text::print(*small.program.module);
}

TEST(Shrink, StopsWhenTheTriesAreUsedUp) {
  const Result small =
      shrink({generate::module(3), {}, false}, [](const Program&) { return true; }, {.max_tries = 2, .progress = {}});
  EXPECT_FALSE(small.is_minimal);
  EXPECT_EQ(small.tries, 2);
}

}  // namespace
}  // namespace hloom::shrink
