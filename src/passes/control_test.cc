// Calls, conditionals, equal and dead code, tuples, layouts, markers, the runner.
#include <algorithm>

#include "interp/interpret.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::after;
using testing::after_in_entry;
using testing::parse;

TEST(InlineCalls, InlinesCallsOfCalls) {
  EXPECT_EQ(
      after("inline-calls", R"(HloModule m
inner { a = f32[] parameter(0)
 ROOT n = f32[] negate(a) }
outer { a = f32[] parameter(0)
 b = f32[] call(a), to_apply=inner
 ROOT c = f32[] multiply(b, a) }
ENTRY e { x = f32[] parameter(0)
 y = f32[] call(x), to_apply=outer
 ROOT z = f32[] call(y), to_apply=inner })"),
      "x = f32[] parameter(0)\nn.2 = f32[] negate(x)\nc.1 = f32[] multiply(n.2, x)\nROOT n.3 = f32[] negate(c.1)\n");
}

TEST(InlineCalls, GivesEachLoopItsOwnComputations) {
  const auto module = parse(R"(HloModule m
body { s = s32[] parameter(0)
 one = s32[] constant(1)
 ROOT t = s32[] add(s, one) }
condition { s = s32[] parameter(0)
 n = s32[] constant(9)
 ROOT p = pred[] compare(s, n), direction=LT }
f { a = s32[] parameter(0)
 ROOT w = s32[] while(a), condition=condition, body=body }
ENTRY e { x = s32[] parameter(0)
 y = s32[] call(x), to_apply=f
 ROOT z = s32[] call(y), to_apply=f })");
  testing::run("inline-calls", *module);
  const auto callers = hlo::callers(*module);
  int loops = 0;
  for (const hlo::Instruction& i : module->entry()->instructions()) {
    if (i.opcode() != hlo::Opcode::While) continue;
    ++loops;
    EXPECT_EQ(callers.at(i.body()).size(), 1u);
    EXPECT_EQ(callers.at(i.condition()).size(), 1u);
  }
  EXPECT_EQ(loops, 2);
  EXPECT_EQ(testing::run("inline-calls", *module), Changed::No);
}

// 60 computations, each calling the one before twice: 2^60 instructions if all were inlined.
TEST(InlineCalls, StopsAtItsLimit) {
  std::string text = "HloModule m\nf0 { a = s32[] parameter(0)\n ROOT n = s32[] negate(a) }\n";
  for (int n = 1; n <= 60; ++n) {
    const std::string before = "f" + std::to_string(n - 1);
    text += "f" + std::to_string(n) + " { a = s32[] parameter(0)\n b = s32[] call(a), to_apply=" + before +
            "\n ROOT c = s32[] call(b), to_apply=" + before + " }\n";
  }
  const auto module = parse(text + "ENTRY e { x = s32[] parameter(0)\n ROOT y = s32[] call(x), to_apply=f60 }");
  EXPECT_EQ(testing::run("inline-calls", *module), Changed::No);
}

TEST(Cse, MergesEqualInstructionsAndComputations) {
  EXPECT_EQ(after("cse", R"(HloModule m
f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
g { p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT r = f32[] add(q, p) }
ENTRY e { x = f32[4] parameter(0)
 z = f32[] constant(0)
 z2 = f32[] constant(0)
 s = f32[] reduce(x, z), dimensions={0}, to_apply=f
 t = f32[] reduce(x, z2), dimensions={0}, to_apply=g
 ROOT u = f32[] multiply(s, t) })"),
            "a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT c = f32[] add(a, b)\nx = f32[4] parameter(0)\nz = "
            "f32[] constant(0)\n"
            "s = f32[] reduce(x, z), dimensions={0}, to_apply=f\nROOT u = f32[] multiply(s, s)\n");
}

TEST(Cse, TellsApartWhatDiffers) {
  for (const char* other : {"t = f32[4] subtract(y, x)", "t = f32[4] add(x, y), frontend_attributes={a=\"b\"}"}) {
    const std::string text =
        std::string(
            "x = f32[4] parameter(0)\ny = f32[4] parameter(1)\ns = f32[4] subtract(x, y)\nv = f32[4] add(x, y)\n") +
        other + "\nROOT r = (f32[4], f32[4], f32[4]) tuple(s, t, v)";
    EXPECT_NE(after_in_entry("cse", text).find("tuple(s, t, v)"), std::string::npos);
  }
}

TEST(SimplifyTuples, ReadsElementsWhereTheyWerePutIn) {
  EXPECT_EQ(
      after_in_entry("simplify-tuples",
                     "p = (f32[], s32[]) parameter(0)\na = f32[] get-tuple-element(p), index=0\n"
                     "b = s32[] get-tuple-element(p), index=1\nt = (f32[], s32[]) tuple(a, b)\n"
                     "u = ((f32[], s32[]), s32[]) tuple(t, b)\nROOT r = (f32[], s32[]) get-tuple-element(u), index=0"),
      "ROOT p = (f32[], s32[]) parameter(0)\n");
}

constexpr const char* kBranches = R"(HloModule m
yes { a = (f32[64,64], f32[64,64]) parameter(0)
 x = f32[64,64] get-tuple-element(a), index=0
 y = f32[64,64] get-tuple-element(a), index=1
 d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 n = f32[64,64] negate(x)
 ROOT t = (f32[64,64], f32[64,64], f32[64,64]) tuple(d, y, n) }
no { a = (f32[64,64]) parameter(0)
 y = f32[64,64] get-tuple-element(a), index=0
 n = f32[64,64] negate(y)
 ROOT t = (f32[64,64], f32[64,64], f32[64,64]) tuple(n, y, n) }
ENTRY e { p = pred[] parameter(0)
 i = s32[] convert(p)
 x = f32[64,64] parameter(1)
 y = f32[64,64] parameter(2)
 a = (f32[64,64], f32[64,64]) tuple(x, y)
 b = (f32[64,64]) tuple(y)
 c = (f32[64,64], f32[64,64], f32[64,64]) conditional(i, a, b), branch_computations={yes, no}
 r = f32[64,64] get-tuple-element(c), index=0
 s = f32[64,64] get-tuple-element(c), index=1
 ROOT t = (f32[64,64], f32[64,64]) tuple(r, s) })";

// An index that is a converted pred takes branch 0 for false; element 1 is y either way, element 2 is not read.
TEST(SimplifyConditionals, TrimsWhatBranchesPassOn) {
  const std::string left = after("simplify-conditionals", kBranches);
  EXPECT_NE(left.find("(f32[64,64]) conditional(p, b, a.3), true_computation=no, false_computation=yes"),
            std::string::npos)
      << left;
  EXPECT_NE(left.find("tuple(r, y.2)"), std::string::npos) << left;
}

std::string two_branches(const std::string& selector, const std::string& root) {
  return "HloModule m\nyes { a = f32[4] parameter(0)\n ROOT n = f32[4] negate(a) }\nno { a = f32[4] parameter(0)\n "
         "ROOT n = f32[4] " +
         root + "(a) }\nENTRY e { q = pred[] parameter(0)\n p = pred[] " + selector +
         "\n x = f32[4] parameter(1)\n"
         " ROOT c = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no }";
}

TEST(SimplifyConditionals, InlinesAndSelects) {
  EXPECT_NE(after("simplify-conditionals", two_branches("constant(false)", "abs")).find("= f32[4] abs(x"),
            std::string::npos);
  EXPECT_EQ(after("simplify-conditionals", two_branches("not(q)", "negate")).find("conditional"), std::string::npos);
  EXPECT_NE(after("simplify-conditionals", two_branches("not(q)", "abs")).find("select("), std::string::npos);
}

// The bits of an index are no answer that could be the other way round.
TEST(SimplifyConditionals, BranchesByTheComplementOfAnIndexStay) {
  const auto module = parse(
      "HloModule m\nf { a = f32[64,64] parameter(0)\n ROOT r = f32[64,64] exponential(a) }\n"
      "g { a = f32[64,64] parameter(0)\n ROOT r = f32[64,64] sine(a) }\n"
      "ENTRY e { i = s32[] parameter(0)\n n = s32[] not(i)\n x = f32[64,64] parameter(1)\n"
      " ROOT c = f32[64,64] conditional(n, x, x), branch_computations={f, g} }");
  EXPECT_EQ(testing::run("simplify-conditionals", *module), Changed::No);
  EXPECT_EQ(module->entry()->root()->operand(0)->opcode(), hlo::Opcode::Not);
}

TEST(SimplifyConditionals, TakesTheLastBranchOutOfRange) {
  for (const int index : {-1, 0, 1, 2, 7}) {
    const auto module = parse(
        "HloModule m\nf { a = s32[] parameter(0)\n ROOT r = s32[] constant(10) }\ng { a = s32[] parameter(0)\n ROOT r "
        "= s32[] constant(20) }\n"
        "h { a = s32[] parameter(0)\n ROOT r = s32[] constant(30) }\nENTRY e { i = s32[] parameter(0)\n"
        " ROOT c = s32[] conditional(i, i, i, i), branch_computations={f, g, h} }");
    hlo::Literal argument(Shape::scalar(DType::S32));
    argument.mutable_data<std::int32_t>()[0] = index;
    const auto want = *interp::interpret(*module, {&argument, 1});
    testing::run("simplify-conditionals", *module);
    EXPECT_EQ(testing::body(*module).find("conditional"), std::string::npos);
    EXPECT_EQ(*interp::interpret(*module, {&argument, 1}), want);
  }
}

TEST(ClearLayouts, PutsCopiesAtTheBorder) {
  const auto module = parse(R"(HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}
ENTRY e { x = f32[2,3]{0,1} parameter(0)
 y = f32[2,3]{0,1} negate(x)
 ROOT z = f32[2,3]{0,1} abs(y) })");
  EXPECT_EQ(testing::run("clear-layouts", *module), Changed::Yes);
  const hlo::Instruction* root = module->entry()->root();
  EXPECT_EQ(root->opcode(), hlo::Opcode::Copy);
  EXPECT_EQ(to_string(root->shape()), "f32[2,3]{0,1}");
  EXPECT_EQ(to_string(root->operand(0)->shape()), "f32[2,3]{1,0}");
  EXPECT_EQ(to_string(module->entry()->parameter(0)->shape()), "f32[2,3]{0,1}");
  EXPECT_EQ(testing::run("clear-layouts", *module), Changed::No);
}

TEST(ClearLayouts, KeepsWhatACustomCallBinds) {
  const auto module = parse(R"(HloModule m
ENTRY e { x = f32[2,3] parameter(0)
 c = f32[2,3]{0,1} custom-call(x), custom_call_target="f", operand_layout_constraints={f32[2,3]{0,1}}
 ROOT z = f32[2,3]{0,1} abs(c) })");
  testing::run("clear-layouts", *module);
  EXPECT_EQ(to_string(module->entry()->root()->operand(0)->shape()), "f32[2,3]{1,0}");
  EXPECT_EQ(testing::run("clear-layouts", *module), Changed::No);
}

TEST(FoldConstants, FoldsFunctionsAsCompiledCodeComputesThem) {
  const auto module = parse("HloModule m\nENTRY e { a = f32[2] constant({0, 1})\n ROOT r = f32[2] exponential(a) }");
  testing::run("fold-constants", *module);
  const hlo::Instruction* root = module->entry()->root();
  ASSERT_EQ(root->opcode(), hlo::Opcode::Constant);
  EXPECT_EQ(root->literal().data<float>()[0], 1.0f);
  EXPECT_NEAR(root->literal().data<float>()[1], 2.7182817f, 1e-6);
}

// 300 elements are more than what is written out of a broadcast alone.
TEST(FoldConstants, WritesOutABroadcastNextToAConstantOfItsSize) {
  std::string numbers = "0";
  for (int n = 1; n < 300; ++n) numbers += ", " + std::to_string(n);
  const std::string left = after_in_entry(
      "fold-constants", "c = s32[300] constant({" + numbers + "})\none = s32[] constant(1)\n" +
                            "b = s32[300] broadcast(one), dimensions={}\nROOT r = s32[300] add(c, b)\n");
  EXPECT_EQ(left.find("add("), std::string::npos);
  EXPECT_NE(left.find("298, 299, 300})"), std::string::npos);
}

TEST(FoldConstants, LeavesBroadcastsAndLargeIotas) {
  for (const char* text : {"c = f32[] constant(2)\nROOT r = f32[100] broadcast(c), dimensions={}",
                           "i = s32[1000] iota(), iota_dimension=0\nROOT r = s32[1000] negate(i)"})
    EXPECT_EQ(after_in_entry("fold-constants", text).find("constant({"), std::string::npos);
}

TEST(RemoveDead, KeepsWhatHasEffects) {
  const std::string left = after_in_entry("remove-dead",
                                          "x = f32[] parameter(0)\nd = f32[] negate(x)\nk = token[] after-all()\n"
                                          "o = token[] outfeed(x, k), outfeed_shape=f32[]\nROOT r = f32[] abs(x)");
  EXPECT_EQ(left.find("negate"), std::string::npos);
  EXPECT_NE(left.find("outfeed"), std::string::npos);
}

// Others wait for the start, so nobody may remove it; then its done stays too.
TEST(RemoveDead, KeepsTheDoneOfAStartThatStays) {
  const std::string left = after_in_entry("remove-dead",
                                          "x = f32[4] parameter(0)\n"
                                          "s = (f32[4], f32[4]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,0}}\n"
                                          "d = f32[4] collective-permute-done(s)\n"
                                          "u = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{0,0}}\n"
                                          "v = f32[4] collective-permute-done(u)\nROOT r = f32[4] abs(x)");
  EXPECT_NE(left.find("collective-permute-done(s)"), std::string::npos) << left;
  EXPECT_EQ(left.find("collective-permute-done(u)"), std::string::npos) << left;
}

TEST(Run, TimesAndDumpsWhatChanged) {
  const auto module =
      parse("HloModule m\nENTRY e { x = f32[] parameter(0)\n n = f32[] negate(x)\n ROOT r = f32[] negate(n) }");
  std::vector<PassTime> times;
  std::vector<std::string> dumped;
  RunOptions options = testing::checking();
  options.times = &times;
  options.dump = [&](const Pass& pass, const hlo::Module&) { dumped.emplace_back(pass.name); };
  const Pass* passes[] = {pass_named("simplify-algebra"), pass_named("remove-dead")};
  EXPECT_EQ(*run_to_fixed_point(passes, *module, 8, options), Changed::Yes);
  EXPECT_EQ(dumped, (std::vector<std::string>{"simplify-algebra", "remove-dead"}));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].runs, 2);
  EXPECT_EQ(times[0].changes, 1);
}

TEST(All, NamesAreSorted) { EXPECT_TRUE(std::ranges::is_sorted(all(), {}, &Pass::name)); }

}  // namespace
}  // namespace hloom::passes
