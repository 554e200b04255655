// Memory spaces and splits at the sides of fusions: each scenario by name, then laws over drawn fusions.
#include "passes/propagate_memory_space.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <random>
#include <set>

#include "interp/interpret.h"
#include "passes/check_memory_spaces.h"
#include "passes/match.h"
#include "passes/separate_memory_spaces.h"
#include "passes/testing.h"
#include "passes/tidy_fusions.h"

namespace hloom::passes {
namespace {

using ::testing::HasSubstr;
using testing::parse;

Instruction& find(const hlo::Module& module, std::string_view name) {
  for (hlo::Computation& c : module.computations())
    for (Instruction& i : c.instructions())
      if (i.name() == name) return i;
  ADD_FAILURE() << "no instruction " << name;
  std::abort();
}

/// A module after the pass, which then finds nothing more, and whose fusions agree with what is around them.
struct After {
  std::unique_ptr<hlo::Module> module;
  Changed changed = Changed::No;

  /// What the layout of a leaf says of its place: "0", "1", "1 SC(0:4)".
  std::string place(std::string_view name, std::int64_t leaf = 0) const {
    const Placement p = placement_of(*leaves(find(*module, name).shape())[static_cast<std::size_t>(leaf)]);
    const std::string text = passes::to_string(p);
    const std::size_t split = text.find(", split ");
    return std::to_string(p.space) + (split == std::string::npos ? "" : " " + text.substr(split + 8));
  }
};

After propagated(const std::string& text) {
  After after{parse(text)};
  after.changed = testing::run("propagate-memory-space", *after.module);
  EXPECT_EQ(testing::run("propagate-memory-space", *after.module), Changed::No);
  const auto agree = check_memory_spaces(*after.module);
  EXPECT_TRUE(agree) << agree.error().message();
  return after;
}

std::string failure(const std::string& text) {
  const auto module = parse(text);
  const std::uint64_t before = hlo::fingerprint(*module);
  const auto changed = propagate_memory_space(*module);
  EXPECT_FALSE(changed);
  EXPECT_EQ(hlo::fingerprint(*module), before) << "an error leaves the module alone";
  return changed ? "" : changed.error().message();
}

/// A module of one fused computation `f` and the entry.
std::string module_of(std::string_view f, std::string_view entry, std::string_view before = {}) {
  return "HloModule m\n" + std::string(before) + "\nf {\n" + std::string(f) + "\n}\nENTRY e {\n" + std::string(entry) +
         "\n}\n";
}
constexpr const char* kLoop = ", kind=kLoop, calls=f";

TEST(PropagateMemorySpace, Scenario01_ModuleWithoutAnySpaceIsLeftAlone) {
  const std::string text = module_of("p = f32[8] parameter(0) ROOT n = f32[8] negate(p)",
                                     "x = f32[8] parameter(0) ROOT y = f32[8] fusion(x)" + std::string(kLoop));
  const auto module = parse(text);
  const std::uint64_t before = hlo::fingerprint(*module);
  EXPECT_EQ(*propagate_memory_space(*module), Changed::No);
  EXPECT_EQ(hlo::fingerprint(*module), before);
}

TEST(PropagateMemorySpace, Scenario02_ArrayResultAndOperandsWithSpaceAndSplitWithSpaceAndWithNeither) {
  const After a = propagated(module_of(
      "p = f32[8] parameter(0) q = f32[8] parameter(1) r = f32[8] parameter(2) s = f32[8] add(p, q)\n"
      "ROOT t = f32[8] add(s, r)",
      "x = f32[8]{0:S(1)SC(0:4)} parameter(0) y = f32[8]{0:S(2)} parameter(1) z = f32[8] parameter(2)\n"
      "ROOT w = f32[8]{0:S(5)} fusion(x, y, z)" +
          std::string(kLoop)));
  EXPECT_EQ(a.changed, Changed::Yes);
  EXPECT_EQ(a.place("p"), "1 SC(0:4)");
  EXPECT_EQ(a.place("q"), "2");
  EXPECT_EQ(a.place("r"), "0");
  EXPECT_EQ(a.place("s"), "0");  // meets no boundary
  EXPECT_EQ(a.place("t"), "5");
}

TEST(PropagateMemorySpace, Scenario03_TupleResultWithTwoSpaces) {
  const After a = propagated(module_of(
      "p = f32[8] parameter(0) n = f32[8] negate(p) m = f32[8] abs(p) ROOT t = (f32[8], f32[8]) tuple(n, m)",
      "x = f32[8] parameter(0) ROOT w = (f32[8]{0:S(1)}, f32[8]{0:S(2)}) fusion(x)" + std::string(kLoop)));
  EXPECT_EQ(a.place("n"), "1");
  EXPECT_EQ(a.place("m"), "2");
  EXPECT_EQ(a.place("t", 0), "1");  // the tuple instruction says it too
  EXPECT_EQ(a.place("t", 1), "2");
}

TEST(PropagateMemorySpace, Scenario04_NestedFusionOnTheInputSideWhoseCalleeIsABitcast) {
  const After a = propagated(module_of("p = f32[2,4] parameter(0) b = f32[8] fusion(p), kind=kLoop, calls=g\n"
                                       "ROOT n = f32[8] negate(b)",
                                       "x = f32[2,4]{1,0:S(1)} parameter(0) ROOT y = f32[8] fusion(x)" + std::string(kLoop),
                                       "g { gp = f32[2,4] parameter(0) ROOT gb = f32[8] bitcast(gp) }"));
  EXPECT_EQ(a.place("gp"), "1");
  EXPECT_EQ(a.place("gb"), "0");
  EXPECT_EQ(a.place("b"), "0");
}

TEST(PropagateMemorySpace, Scenario05_NestedFusionOnTheOutputSideWhoseRootIsABitcast) {
  const After a = propagated(module_of("p = f32[2,4] parameter(0) n = f32[2,4] negate(p)\n"
                                       "ROOT b = f32[8] fusion(n), kind=kLoop, calls=g",
                                       "x = f32[2,4] parameter(0) ROOT y = f32[8]{0:S(1)} fusion(x)" + std::string(kLoop),
                                       "g { gp = f32[2,4] parameter(0) ROOT gb = f32[8] bitcast(gp) }"));
  EXPECT_EQ(a.place("gb"), "1");
  EXPECT_EQ(a.place("b"), "1");
  for (const char* other : {"gp", "n", "p"}) EXPECT_EQ(a.place(other), "0") << other;
}

TEST(PropagateMemorySpace, Scenario06_BitcastBetweenParameterAndOutputInDifferentSpaces) {
  const After a =
      propagated(module_of("p = f32[2,4] parameter(0) ROOT b = f32[8] bitcast(p)",
                           "x = f32[2,4]{1,0:S(1)} parameter(0) ROOT y = f32[8]{0:S(2)} fusion(x)" + std::string(kLoop)));
  EXPECT_EQ(a.place("p"), "1");
  EXPECT_EQ(a.place("b"), "2");
}

std::string one_leaf_twice(std::string_view first, std::string_view second) {
  return module_of("p = f32[8] parameter(0) ROOT t = (f32[8], f32[8]) tuple(p, p)",
                   "x = f32[8]{0:S(1)} parameter(0) ROOT y = (f32[8]" + std::string(first) + ", f32[8]" +
                       std::string(second) + ") fusion(x)" + kLoop);
}

// There is no precedence: who wants a value in two places is told both, and gets copies when asking for them.
TEST(PropagateMemorySpace, Scenario07_RootReturnsOneParameterLeafTwiceInDifferentSpaces) {
  EXPECT_EQ(propagated(one_leaf_twice("{0:S(1)}", "{0:S(1)}")).place("t", 1), "1");
  const std::string message = failure(one_leaf_twice("{0:S(1)}", "{0:S(2)}"));
  EXPECT_THAT(message, HasSubstr("operand 0 (x) of y is in memory space 1, the result of y {1} in memory space 2"));
  EXPECT_THAT(message, HasSubstr("separate-memory-spaces"));
  EXPECT_THAT(failure(one_leaf_twice("{0:S(2)}", "{0:S(2)}")), HasSubstr("the result of y {0} in memory space 2"));
}

TEST(PropagateMemorySpace, Scenario08_NestedTupleParameterReadByElementsOfElementsAndWrappedAgain) {
  const After a = propagated(module_of(
      "p = (f32[8], (f32[8], s32[4])) parameter(0) i = (f32[8], s32[4]) get-tuple-element(p), index=1\n"
      "v = f32[8] get-tuple-element(i), index=0 w = s32[4] get-tuple-element(i), index=1\n"
      "u = (s32[4], f32[8]) tuple(w, v) ROOT t = ((s32[4], f32[8]), f32[8]) tuple(u, v)",
      "a = f32[8] parameter(0) b = f32[8]{0:S(1)} parameter(1) c = s32[4]{0:S(2)} parameter(2)\n"
      "bc = (f32[8]{0:S(1)}, s32[4]{0:S(2)}) tuple(b, c)\n"
      "x = (f32[8], (f32[8]{0:S(1)}, s32[4]{0:S(2)})) tuple(a, bc)\n"
      "ROOT y = ((s32[4]{0:S(2)}, f32[8]{0:S(1)}), f32[8]{0:S(1)}) fusion(x)" +
          std::string(kLoop)));
  EXPECT_EQ(a.place("p", 0) + a.place("p", 1) + a.place("p", 2), "012");
  EXPECT_EQ(a.place("i", 0) + a.place("i", 1), "12");
  EXPECT_EQ(a.place("v") + a.place("w"), "12");
  EXPECT_EQ(a.place("u", 0) + a.place("u", 1), "21");
  EXPECT_EQ(a.place("t", 0) + a.place("t", 1) + a.place("t", 2), "211");
}

TEST(PropagateMemorySpace, Scenario09_AddDependencyBarrierDomainAndCopiedTuplePassAValueOn) {
  const After a = propagated(module_of(
      "p = f32[8] parameter(0) k = token[] after-all() d = f32[8] add-dependency(p, k) o = f32[8] opt-barrier(d)\n"
      "m = f32[8] domain(o), domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=0}}\n"
      "t = (f32[8]) tuple(m) c = (f32[8]) copy(t) g = f32[8] get-tuple-element(c), index=0 z = f32[8] copy(g)\n"
      "ROOT n = f32[8] negate(z)",
      "x = f32[8]{0:S(1)} parameter(0) ROOT y = f32[8] fusion(x)" + std::string(kLoop)));
  for (const char* name : {"p", "d", "o", "m", "t", "c", "g"}) EXPECT_EQ(a.place(name), "1") << name;
  EXPECT_EQ(a.place("z"), "0");  // the copy of an array is a new one
}

TEST(PropagateMemorySpace, Scenario10_NestedFusionThatTakesOneValueTwice) {
  const After a = propagated(module_of("p = f32[8] parameter(0) ROOT n = f32[8] fusion(p, p), kind=kLoop, calls=g",
                                       "x = f32[8]{0:S(1)} parameter(0) ROOT y = f32[8] fusion(x)" + std::string(kLoop),
                                       "g { ga = f32[8] parameter(0) gb = f32[8] parameter(1) ROOT gs = f32[8] add(ga, gb) }"));
  EXPECT_EQ(a.place("ga"), "1");
  EXPECT_EQ(a.place("gb"), "1");
  EXPECT_EQ(a.place("gs"), "0");
}

TEST(PropagateMemorySpace, Scenario11_UpdateWhoseBaseIsReachedOnlyThroughIt) {
  const After direct = propagated(module_of(
      "p = f32[8] parameter(0) i = s32[] parameter(1) b = f32[8] negate(p) u = f32[2] slice(p), slice={[0:2]}\n"
      "ROOT d = f32[8] dynamic-update-slice(b, u, i)",
      "x = f32[8] parameter(0) j = s32[] parameter(1) ROOT y = f32[8]{0:S(1)} fusion(x, j)" + std::string(kLoop)));
  EXPECT_EQ(direct.place("d") + direct.place("b") + direct.place("p") + direct.place("u"), "1100");
  const After through_bitcast = propagated(module_of(
      "p = f32[2,4] parameter(0) i = s32[] parameter(1) b = f32[8] bitcast(p) u = f32[2] slice(b), slice={[0:2]}\n"
      "ROOT d = f32[8] dynamic-update-slice(b, u, i)",
      "x = f32[2,4] parameter(0) j = s32[] parameter(1) ROOT y = f32[8]{0:S(1)} fusion(x, j)" + std::string(kLoop)));
  EXPECT_EQ(through_bitcast.place("d") + through_bitcast.place("b") + through_bitcast.place("p"), "110");
}

TEST(PropagateMemorySpace, Scenario12_UpdateWhoseBaseIsANestedFusionWithPackedAndTiledLayout) {
  const After a = propagated(module_of(
      "p = s4[8,4]{1,0:E(4)} parameter(0) i = s32[] parameter(1)\n"
      "b = s4[8,4]{0,1:T(2,2)E(4)} fusion(p), kind=kLoop, calls=g\n"
      "u = s4[1,4]{0,1:E(4)} slice(b), slice={[0:1],[0:4]}\n"
      "ROOT d = s4[8,4]{0,1:T(2,2)E(4)} dynamic-update-slice(b, u, i, i)",
      "x = s4[8,4]{1,0:E(4)} parameter(0) j = s32[] parameter(1)\n"
      "ROOT y = s4[8,4]{0,1:T(2,2)E(4)S(1)} fusion(x, j)" +
          std::string(kLoop),
      "g { gp = s4[8,4]{1,0:E(4)} parameter(0) ROOT gc = s4[8,4]{0,1:T(2,2)E(4)} copy(gp) }"));
  for (const char* name : {"d", "b", "gc"}) {
    EXPECT_EQ(a.place(name), "1") << name;
    EXPECT_EQ(to_string(find(*a.module, name).shape().layout()), "{0,1:T(2,2)E(4)S(1)}") << name;
  }
  EXPECT_EQ(a.place("p") + a.place("gp"), "00");
}

hlo::Computation& computation(const hlo::Module& module, std::string_view name) {
  for (hlo::Computation& c : module.computations())
    if (c.name() == name) return c;
  std::abort();
}

After propagated_in(const std::string& text, std::string_view name) {
  After after{parse(text)};
  const auto changed = propagate_memory_space(computation(*after.module, name));
  EXPECT_TRUE(changed) << changed.error().message();
  after.changed = *changed;
  EXPECT_EQ(*propagate_memory_space(computation(*after.module, name)), Changed::No);
  return after;
}

TEST(PropagateMemorySpace, Scenario13_OneComputationFollowsItsParametersAndLeavesCallersAlone) {
  const After a = propagated_in(
      module_of("p = (f32[8]{0:S(1)}, f32[8]{0:SC(0:4)}) parameter(0) v = f32[8] get-tuple-element(p), index=0\n"
                "w = f32[8] get-tuple-element(p), index=1 n = f32[8] negate(w) ROOT t = (f32[8], f32[8]) tuple(v, n)",
                "x = (f32[8], f32[8]) parameter(0) ROOT y = (f32[8], f32[8]{0:S(2)}) fusion(x)" + std::string(kLoop)),
      "f");
  EXPECT_EQ(a.changed, Changed::Yes);
  EXPECT_EQ(a.place("p", 0) + a.place("v") + a.place("t", 0), "111");
  EXPECT_EQ(a.place("w"), "0 SC(0:4)");
  EXPECT_EQ(a.place("n") + a.place("t", 1), "00");
  EXPECT_EQ(a.place("x", 0) + a.place("y", 0) + a.place("y", 1), "002");
}

TEST(PropagateMemorySpace, Scenario14_OneComputationStartsFromTheLayoutOfItsRoot) {
  const After a = propagated_in(
      module_of("p = f32[8] parameter(0) i = s32[] parameter(1) b = f32[8] negate(p) u = f32[2] slice(p), slice={[0:2]}\n"
                "d = f32[8] dynamic-update-slice(b, u, i) ROOT t = (f32[8]{0:S(1)}) tuple(d)",
                "x = f32[8] parameter(0) j = s32[] parameter(1) ROOT y = (f32[8]) fusion(x, j)" + std::string(kLoop)),
      "f");
  EXPECT_EQ(a.place("t") + a.place("d") + a.place("b") + a.place("p") + a.place("y"), "11100");
}

TEST(PropagateMemorySpace, Scenario15_NestedFusionOfOneComputationFollows) {
  const After a = propagated_in(
      module_of("p = f32[8]{0:S(1)} parameter(0) ROOT n = f32[8] fusion(p), kind=kLoop, calls=g",
                "x = f32[8] parameter(0) ROOT y = f32[8] fusion(x)" + std::string(kLoop),
                "g { gp = f32[8] parameter(0) ROOT gn = f32[8] negate(gp) }"),
      "f");
  EXPECT_EQ(a.place("gp") + a.place("gn") + a.place("x"), "100");
}

TEST(PropagateMemorySpace, Scenario16_AsyncWrapperOnAnotherThread) {
  const std::string text =
      "HloModule m\nf { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }\n"
      "g { gp = f32[8] parameter(0) ROOT gn = f32[8] abs(gp) }, execution_thread=\"side\"\n"
      "w { wp = f32[8]{0:S(1)} parameter(0) ROOT wf = f32[8]{0:S(2)} fusion(wp), kind=kLoop, calls=g }, "
      "execution_thread=\"side\"\n"
      "ENTRY e { x = f32[8]{0:S(1)} parameter(0)\n"
      "s = ((f32[8]{0:S(1)}), f32[8]{0:S(2)}, u32[]) async-start(x), async_execution_thread=\"side\", calls=w\n"
      "d = f32[8]{0:S(2)} async-done(s) ROOT y = f32[8] fusion(d), kind=kLoop, calls=f }\n";
  After main{parse(text)};
  EXPECT_EQ(*propagate_memory_space(*main.module, {"main"}), Changed::Yes);
  EXPECT_EQ(main.place("p") + main.place("gp") + main.place("gn"), "200");
  EXPECT_EQ(*propagate_memory_space(*main.module, {"side"}), Changed::Yes);
  EXPECT_EQ(main.place("gp") + main.place("gn"), "12");
  const After all = propagated(text);
  EXPECT_EQ(all.place("p") + all.place("gp") + all.place("gn"), "212");
}

// What is not a plain value there has no place: such fusions are taken apart before.
TEST(PropagateMemorySpace, Scenario17_ACallInAFusedComputationIsRefused) {
  const std::string message =
      failure(module_of("p = f32[8] parameter(0) ROOT n = f32[8] call(p), to_apply=g",
                        "x = f32[8]{0:S(1)} parameter(0) ROOT y = f32[8] fusion(x)" + std::string(kLoop),
                        "g { gp = f32[8] parameter(0) ROOT gn = f32[8] negate(gp) }"));
  EXPECT_THAT(message, HasSubstr("n: a call in the fused computation f"));
}

// Boundaries of one module leave each other alone: all places that are not the default, by name.
TEST(PropagateMemorySpace, Scenario18_AllBoundariesOfOneModule) {
  const After a = propagated(R"(HloModule m
f1 { p1 = f32[8] parameter(0) q1 = f32[8] parameter(1) r1 = f32[8] parameter(2) a1 = f32[8] add(p1, q1)
  ROOT t1 = f32[8] add(a1, r1) }
f2 { p2 = f32[8] parameter(0) n2 = f32[8] negate(p2) m2 = f32[8] abs(p2) ROOT t2 = (f32[8], f32[8]) tuple(n2, m2) }
g3 { gp3 = f32[2,4] parameter(0) ROOT gb3 = f32[8] bitcast(gp3) }
f3 { p3 = f32[2,4] parameter(0) b3 = f32[8] fusion(p3), kind=kLoop, calls=g3 ROOT n3 = f32[8] negate(b3) }
g4 { gp4 = f32[2,4] parameter(0) ROOT gb4 = f32[8] bitcast(gp4) }
f4 { p4 = f32[2,4] parameter(0) n4 = f32[2,4] negate(p4) ROOT b4 = f32[8] fusion(n4), kind=kLoop, calls=g4 }
f5 { p5 = f32[8] parameter(0) u5 = f32[2] parameter(1) i5 = s32[] parameter(2)
  ROOT d5 = f32[8] dynamic-update-slice(p5, u5, i5) }
ENTRY e {
  x1 = f32[8]{0:S(1)SC(0:4)} parameter(0)
  y1 = f32[8]{0:S(2)} parameter(1)
  z1 = f32[8] parameter(2)
  w1 = f32[8]{0:S(5)} fusion(x1, y1, z1), kind=kLoop, calls=f1
  w2 = (f32[8]{0:S(1)}, f32[8]{0:S(2)}) fusion(z1), kind=kLoop, calls=f2
  x3 = f32[2,4]{1,0:S(1)} parameter(3)
  w3 = f32[8] fusion(x3), kind=kLoop, calls=f3
  x4 = f32[2,4] parameter(4)
  w4 = f32[8]{0:S(1)} fusion(x4), kind=kLoop, calls=f4
  u = f32[2] parameter(5)
  i = s32[] parameter(6)
  w5 = f32[8]{0:S(5)} fusion(w1, u, i), kind=kLoop, calls=f5
  ROOT r = (f32[8], f32[8]{0:S(1)}, f32[8]{0:S(5)}) tuple(w3, w4, w5)
})");
  std::set<std::string> places;
  for (const hlo::Computation& c : a.module->computations())
    for (const Instruction& i : c.instructions())
      for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf)
        if (const std::string place = a.place(i.name(), leaf); place != "0")
          places.insert(i.name() + "{" + std::to_string(leaf) + "} " + place);
  EXPECT_EQ(places, (std::set<std::string>{"p1{0} 1 SC(0:4)", "q1{0} 2", "t1{0} 5", "n2{0} 1", "m2{0} 2", "t2{0} 1",
                                           "t2{1} 2", "gp3{0} 1", "p3{0} 1", "gb4{0} 1", "b4{0} 1", "p5{0} 5",
                                           "d5{0} 5", "x1{0} 1 SC(0:4)", "y1{0} 2", "w1{0} 5", "w2{0} 1", "w2{1} 2",
                                           "x3{0} 1", "w4{0} 1", "w5{0} 5", "r{1} 1", "r{2} 5"}));
}

TEST(PropagateMemorySpace, Scenario19_ASecondRunFindsNothing) {
  const After a = propagated(one_leaf_twice("{0:S(1)}", "{0:S(1)}"));
  EXPECT_EQ(a.changed, Changed::Yes);
  EXPECT_EQ(*propagate_memory_space(*a.module), Changed::No);
}

TEST(PropagateMemorySpace, Scenario20_SplitsAloneAreSetAndStaleOnesRemoved) {
  const After a = propagated(module_of(
      "p = f32[8] parameter(0) q = f32[8]{0:SC(0:1)(0:2)} parameter(1) ROOT s = f32[8]{0:SC(0:3)} add(p, q)",
      "x = f32[8]{0:SC(0:4)} parameter(0) y = f32[8] parameter(1) ROOT z = f32[8] fusion(x, y)" + std::string(kLoop)));
  EXPECT_EQ(a.place("p"), "0 SC(0:4)");
  EXPECT_EQ(a.place("q"), "0");
  EXPECT_EQ(a.place("s"), "0");
}

TEST(PropagateMemorySpace, Scenario21_AConditionalInAFusedComputationIsRefused) {
  const std::string message = failure(module_of(
      "p = f32[8] parameter(0) c = pred[] parameter(1) n = f32[8] conditional(c, p, p), true_computation=g,\n"
      "false_computation=h ROOT t = (f32[8]) tuple(n)",
      "x = f32[8]{0:S(1)} parameter(0) b = pred[] parameter(1) ROOT y = (f32[8]) fusion(x, b)" + std::string(kLoop),
      "g { gp = f32[8] parameter(0) ROOT gn = f32[8] negate(gp) }\nh { hp = f32[8] parameter(0) ROOT hn = f32[8] abs(hp) }"));
  EXPECT_THAT(message, HasSubstr("n: a conditional in the fused computation f"));
}

std::string update_of_operand(std::string_view base, std::string_view result) {
  return module_of("p = f32[8] parameter(0) i = s32[] parameter(1) u = f32[2] parameter(2)\n"
                   "ROOT d = f32[8] dynamic-update-slice(p, u, i)",
                   "x = f32[8]" + std::string(base) + " parameter(0) j = s32[] parameter(1) v = f32[2] parameter(2)\n"
                   "ROOT y = f32[8]" + std::string(result) + " fusion(x, j, v)" + kLoop);
}

TEST(PropagateMemorySpace, AnUpdateAndItsBaseInDifferentSpacesAreAConflict) {
  EXPECT_EQ(propagated(update_of_operand("{0:S(1)}", "{0:S(1)}")).place("p"), "1");
  const std::string message = failure(update_of_operand("", "{0:S(1)}"));
  EXPECT_THAT(message, HasSubstr("operand 0 (x) of y is in memory space 0, the result of y in memory space 1"));
  EXPECT_THAT(message, HasSubstr("the update d is written over its base"));
  // How the base is cut is its own affair.
  const After split = propagated(update_of_operand("{0:S(1)SC(0:4)}", "{0:S(1)}"));
  EXPECT_EQ(split.place("p"), "1 SC(0:4)");
  EXPECT_EQ(split.place("d"), "1");
}

TEST(CheckMemorySpaces, Invariant02_SpaceAndSplitOfCalleeLeafEqualThoseOfCallerLeafAtEveryFusionBoundary) {
  const auto refused = [](const std::string& text) {
    const auto agree = check_memory_spaces(*parse(text));
    EXPECT_FALSE(agree);
    return agree ? "" : agree.error().message();
  };
  const std::string f = "p = f32[8] parameter(0) ROOT n = f32[8] fusion(p), kind=kLoop, calls=g";
  const std::string g = "g { gp = f32[8] parameter(0) ROOT gn = f32[8] negate(gp) }";
  const auto entry = [](std::string_view x, std::string_view y) {
    return "x = f32[8]" + std::string(x) + " parameter(0) ROOT y = f32[8]" + std::string(y) + " fusion(x)" + kLoop;
  };
  EXPECT_TRUE(check_memory_spaces(*parse(module_of(f, entry("", ""), g))));
  EXPECT_THAT(refused(module_of(f, entry("{0:S(1)}", ""), g)),
              HasSubstr("y: operand 0 (x) of y is in memory space 1, p of its computation in memory space 0"));
  EXPECT_THAT(refused(module_of(f, entry("", "{0:SC(0:4)}"), g)),
              HasSubstr("the result of y is in memory space 0, split SC(0:4), n of its computation in memory space 0"));
  const std::string nested = "p = f32[8] parameter(0) ROOT n = f32[8]{0:S(2)} fusion(p), kind=kLoop, calls=g";
  EXPECT_THAT(refused(module_of(nested, entry("", "{0:S(2)}"), g)), HasSubstr("n: the result of n is in memory space 2"));
}

// --- What separates places -----------------------------------------------------------------------------------------

std::int64_t count(const hlo::Module& module, Opcode opcode) {
  std::int64_t n = 0;
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) n += is(&i, opcode) ? 1 : 0;
  return n;
}

/// After separate-memory-spaces there is no conflict left.
After separated(const std::string& text) {
  After after{parse(text)};
  after.changed = testing::run("separate-memory-spaces", *after.module);
  testing::run("propagate-memory-space", *after.module);
  EXPECT_EQ(testing::run("separate-memory-spaces", *after.module), Changed::No);
  const auto agree = check_memory_spaces(*after.module);
  EXPECT_TRUE(agree) << agree.error().message();
  return after;
}

TEST(SeparateMemorySpaces, CopiesWhatIsReturnedInSeveralSpaces) {
  const After a = separated(one_leaf_twice("{0:S(2)}", "{0:S(5)}"));
  EXPECT_EQ(count(*a.module, Opcode::Copy), 2);
  EXPECT_EQ(a.place("p"), "1");
  EXPECT_EQ(a.place("y", 0) + a.place("y", 1), "25");
  EXPECT_EQ(separated(one_leaf_twice("{0:S(1)}", "{0:S(1)}")).changed, Changed::No);
}

TEST(SeparateMemorySpaces, CopiesTheBasesOfUpdates) {
  const After a = separated(update_of_operand("", "{0:S(1)}"));
  EXPECT_EQ(find(*a.module, "d").operand(0)->opcode(), Opcode::Copy);
  EXPECT_EQ(a.place("p") + a.place("d"), "01");
  const After two = separated(module_of(
      "p = f32[8] parameter(0) i = s32[] parameter(1) u = f32[2] slice(p), slice={[0:2]}\n"
      "b = f32[8] negate(p) c = f32[8] dynamic-update-slice(b, u, i) d = f32[8] dynamic-update-slice(b, u, i)\n"
      "ROOT t = (f32[8], f32[8]) tuple(c, d)",
      "x = f32[8] parameter(0) j = s32[] parameter(1) ROOT y = (f32[8]{0:S(1)}, f32[8]{0:S(5)}) fusion(x, j)" +
          std::string(kLoop)));
  EXPECT_EQ(two.place("b") + two.place("c") + two.place("d"), "115");
}

TEST(SeparateMemorySpaces, ABitcastToOtherDimensionsKeepsItsOwnCuts) {
  const auto module = testing::parse(
      "HloModule m\nENTRY e {\n x = s8[8,5,5]{2,1,0:S(1)SC(0:1,5)} parameter(0)\n"
      " ROOT b = s8[5,5,8]{1,0,2} bitcast(x)\n}\n");
  ASSERT_TRUE(module);
  testing::run("separate-memory-spaces", *module);
  const hlo::Instruction& copy = *module->entry()->root();
  EXPECT_EQ(placement_of(copy.shape()), Placement());
  EXPECT_EQ(placement_of(copy.operand(0)->shape()), (Placement{1, {}}));
}

TEST(SeparateMemorySpaces, CopiesBetweenNamesThatDisagree) {
  const After a = separated(
      "HloModule m\nENTRY e { x = f32[8] parameter(0) i = s32[] parameter(1) u = f32[2] slice(x), slice={[0:2]}\n"
      "t = (f32[8]{0:S(1)}, s32[]) tuple(x, i) g = f32[8]{0:S(2)} get-tuple-element(t), index=0\n"
      "b = f32[2,4]{1,0:S(5)} bitcast(g) n = f32[2,4]{1,0:S(5)} negate(b)\n"
      "d = f32[8]{0:S(1)} dynamic-update-slice(x, u, i) ROOT r = (f32[2,4]{1,0:S(5)}, f32[8]{0:S(1)}) tuple(n, d) }\n");
  EXPECT_EQ(count(*a.module, Opcode::Copy), 4);
  EXPECT_EQ(a.place("g"), "1");
  EXPECT_EQ(a.place("b"), "2");
  EXPECT_EQ(find(*a.module, "d").operand(0)->opcode(), Opcode::Copy);
}

// --- Laws over drawn fusions ---------------------------------------------------------------------------------------

/// Draws a fusion of everything that passes values on, nested two deep, and the spaces around it.
class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_(seed) {}

  std::string text() {
    std::string g = computation("g", 2, false), f = computation("f", 2, true);
    std::string entry;
    for (int k = 0; k < 2; ++k)
      entry += " x" + std::to_string(k) + " = f32[8]" + space() + " parameter(" + std::to_string(k) + ")\n";
    const std::string results = "(f32[8]" + space() + ", f32[8]" + space() + ")";
    entry += " ROOT y = " + results + " fusion(x0, x1), kind=kLoop, calls=f\n";
    return "HloModule m\n" + g + f + "ENTRY e {\n" + entry + "}\n";
  }

 private:
  int draw(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string space() {
    constexpr const char* kSpaces[] = {"", "", "{0:S(1)}", "{0:S(5)}", "{0:SC(0:4)}", "{0:S(1)SC(0:2,6)}"};
    return kSpaces[draw(6)];
  }
  std::string computation(const std::string& name, int parameters, bool nests) {
    std::string body;
    std::vector<std::string> arrays;
    for (int k = 0; k < parameters; ++k) {
      arrays.push_back(name + "p" + std::to_string(k));
      body += " " + arrays.back() + " = f32[8]" + space() + " parameter(" + std::to_string(k) + ")\n";
    }
    body += " " + name + "i = s32[] constant(3)\n " + name + "k = token[] after-all()\n";
    const auto any = [&] { return arrays[static_cast<std::size_t>(draw(static_cast<int>(arrays.size())))]; };
    bool nested = false;
    for (int n = 0; n < 7; ++n) {
      const std::string v = name + std::to_string(n);
      const auto add = [&](const std::string& line) { body += " " + v + " = " + line + "\n"; };
      const std::string f32 = "f32[8]" + space() + " ";
      switch (draw(nests && !nested ? 8 : 7)) {
        case 0: add(f32 + "negate(" + any() + ")"); break;
        case 1: add(f32 + "bitcast(" + any() + ")"); break;
        case 2: add(f32 + "opt-barrier(" + any() + ")"); break;
        case 3: add(f32 + "add-dependency(" + any() + ", " + name + "k)"); break;
        case 4: add(f32 + "dynamic-update-slice(" + any() + ", " + any() + ", " + name + "i)"); break;
        case 5: {
          const std::string a = any(), b = any();
          body += " " + v + "t = (f32[8], f32[8]) tuple(" + a + ", " + b + ")\n " + v +
                  "c = (f32[8], f32[8]) copy(" + v + "t)\n";
          add(f32 + "get-tuple-element(" + v + "c), index=" + std::to_string(draw(2)));
          break;
        }
        case 6: add(f32 + "copy(" + any() + ")"); break;
        default:
          body += " " + v + "f = (f32[8], f32[8]) fusion(" + any() + ", " + any() + "), kind=kLoop, calls=g\n";
          add(f32 + "get-tuple-element(" + v + "f), index=" + std::to_string(draw(2)));
          nested = true;
      }
      arrays.push_back(v);
    }
    if (nests && !nested) {
      body += " fg = (f32[8], f32[8]) fusion(" + any() + ", " + any() + "), kind=kLoop, calls=g\n"
              " fz = f32[8] get-tuple-element(fg), index=0\n";
      arrays.push_back("fz");
    }
    return name + " {\n" + body + " ROOT " + name + "r = (f32[8], f32[8]) tuple(" + any() + ", " + any() + ")\n}\n";
  }

  std::mt19937_64 random_;
};

/// The whole-module analysis, done the slow way: sets of positions grow by each rule alone until none grows, over all
/// computations at once. Gives the printed module, or nothing where two sides disagree.
class SlowPropagation {
 public:
  explicit SlowPropagation(hlo::Module& module) : module_(module) {}

  std::optional<std::string> run() {
    for (hlo::Computation& c : module_.computations())
      for (Instruction& i : c.instructions()) {
        if (!is(&i, Opcode::Fusion) || i.parent() != module_.entry()) continue;
        for (std::int64_t k = 0; k < i.num_operands(); ++k) ask(i.operand(k)->shape(), *i.called(0)->parameter(k));
        ask(i.shape(), *i.called(0)->root());
      }
    grow();
    follows_updates_ = false;
    for (hlo::Computation& c : module_.computations())
      for (Instruction& i : c.instructions()) {
        if (!is(&i, Opcode::Fusion) || i.parent() == module_.entry()) continue;
        for (Instruction* operand : i.operands()) ask_where_made({operand, 0});
        for (std::int64_t k = 0; k < num_leaves(i.shape()); ++k) ask_where_made({&i, k});
      }
    grow();
    if (conflict_) return std::nullopt;
    for (const auto& [at, placement] : asked_) at.first->set_shape(placed(at.first->shape(), at.second, placement));
    return text::print(module_);
  }

 private:
  using At = std::pair<Instruction*, std::int64_t>;

  void ask(const Shape& outside, Instruction& inside) {
    const auto all = leaves(outside);
    for (std::size_t n = 0; n < all.size(); ++n) set({&inside, static_cast<std::int64_t>(n)}, placement_of(*all[n]));
  }
  void grow() {
    for (bool grows = true; grows;) {
      grows = false;
      for (hlo::Computation& c : module_.computations())
        for (Instruction& i : c.instructions()) grows = step(i) || grows;
    }
  }
  void ask_where_made(At at) {
    if (asked_.contains(at)) return;
    At from = at;
    for (At next = named_by(from); next != from; next = named_by(from)) from = next;
    asked_.emplace(at, placement_of(*leaves(from.first->shape())[static_cast<std::size_t>(from.second)]));
  }
  At named_by(At at) const {
    Instruction& i = *at.first;
    switch (i.opcode()) {
      case Opcode::Tuple: return {i.operand(at.second), 0};
      case Opcode::GetTupleElement: return {i.operand(0), i.tuple_index()};
      case Opcode::AddDependency:
      case Opcode::OptBarrier: return {i.operand(0), 0};
      case Opcode::Copy: return i.shape().is_tuple() ? At(i.operand(0), at.second) : at;
      case Opcode::Fusion: return {i.called(0)->root(), at.second};
      case Opcode::Parameter:
        for (hlo::Computation& c : module_.computations())
          for (Instruction& user : c.instructions())
            if (is(&user, Opcode::Fusion) && user.called(0) == i.parent() && user.parent() != module_.entry())
              return {user.operand(i.parameter_number()), 0};
        return at;
      default: return at;
    }
  }
  bool set(At at, const Placement& p) {
    const auto [found, added] = asked_.emplace(at, p);
    if (!(found->second == p)) conflict_ = true;
    return added;
  }
  bool same(At a, At b) {
    bool grows = false;
    if (const auto found = asked_.find(a); found != asked_.end()) grows = set(b, Placement(found->second));
    if (const auto found = asked_.find(b); found != asked_.end()) grows = set(a, Placement(found->second)) || grows;
    return grows;
  }
  bool step(Instruction& i) {
    bool grows = false;
    const std::int64_t count = num_leaves(i.shape());
    switch (i.opcode()) {
      case Opcode::Tuple:
        for (std::int64_t k = 0; k < count; ++k) grows = same({&i, k}, {i.operand(k), 0}) || grows;
        return grows;
      case Opcode::GetTupleElement: return same({&i, 0}, {i.operand(0), i.tuple_index()});
      case Opcode::AddDependency:
      case Opcode::OptBarrier: return same({&i, 0}, {i.operand(0), 0});
      case Opcode::Copy:
        for (std::int64_t k = 0; k < count && i.shape().is_tuple(); ++k) grows = same({&i, k}, {i.operand(0), k}) || grows;
        return grows;
      case Opcode::Fusion:
        if (i.parent() == module_.entry()) return false;
        for (std::int64_t k = 0; k < count; ++k) grows = same({&i, k}, {i.called(0)->root(), k}) || grows;
        for (std::int64_t k = 0; k < i.num_operands(); ++k)
          grows = same({i.operand(k), 0}, {i.called(0)->parameter(k), 0}) || grows;
        return grows;
      case Opcode::DynamicUpdateSlice: {
        const auto result = asked_.find({&i, 0});
        if (result == asked_.end() || !follows_updates_) return false;
        const auto base = asked_.find({i.operand(0), 0});
        if (base != asked_.end() && base->second.space == result->second.space) return false;  // cut as it likes
        return set({i.operand(0), 0}, Placement(result->second));
      }
      default: return false;
    }
  }

  hlo::Module& module_;
  std::map<At, Placement> asked_;
  bool conflict_ = false;
  bool follows_updates_ = true;
};

constexpr int kDraws = 400;

// Without what nothing uses.
std::string drawn(int seed) {
  const auto module = *text::parse_module(Drawn(static_cast<std::uint64_t>(seed)).text(), {.verify = false});
  for (int level = 0; level < 3; ++level) tidy_fusions(*module);  // what used something may have gone with it
  return text::print(*module);
}

TEST(PropagateMemorySpace, Scenario18_EqualsTheWholeModuleAnalysisDoneTheSlowWay) {
  int good = 0, conflicts = 0;
  for (int seed = 0; seed < kDraws; ++seed) {
    const std::string text = drawn(seed);
    const auto fast = parse(text), slow = parse(text);
    const auto changed = propagate_memory_space(*fast);
    const auto expected = SlowPropagation(*slow).run();
    ASSERT_EQ(static_cast<bool>(changed), expected.has_value()) << text << (changed ? "" : changed.error().message());
    ++(expected ? good : conflicts);
    if (!expected) continue;
    EXPECT_EQ(text::print(*fast), *expected) << text;
    EXPECT_TRUE(check_memory_spaces(*fast)) << text;
  }
  EXPECT_GT(good, 20);
  EXPECT_GT(conflicts, 20);
}

TEST(PropagateMemorySpace, DoesNotDependOnTheOrderOfInstructions) {
  std::mt19937_64 random(7);
  for (int seed = 0; seed < kDraws; ++seed) {
    const std::string text = drawn(seed);
    const auto plain = parse(text), shuffled = parse(text);
    for (hlo::Computation& c : shuffled->computations()) {
      std::vector<Instruction*> order, ready;
      std::set<const Instruction*> done;
      while (static_cast<std::int64_t>(order.size()) < c.num_instructions()) {
        ready.clear();
        for (Instruction& i : c.instructions())
          if (!done.contains(&i) && std::ranges::all_of(i.operands(), [&](auto* o) { return done.contains(o); }))
            ready.push_back(&i);
        order.push_back(ready[random() % ready.size()]);
        done.insert(order.back());
      }
      c.set_order(order);
    }
    const auto a = propagate_memory_space(*plain), b = propagate_memory_space(*shuffled);
    ASSERT_EQ(static_cast<bool>(a), static_cast<bool>(b)) << text;
    if (!a) continue;
    for (hlo::Computation& c : plain->computations())
      for (Instruction& i : c.instructions()) EXPECT_EQ(i.shape(), find(*shuffled, i.name()).shape()) << i.name() << text;
  }
}

TEST(SeparateMemorySpaces, LeavesNoConflictAndChangesNoValue) {
  std::mt19937_64 random(11);
  for (int seed = 0; seed < kDraws; ++seed) {
    const std::string text = drawn(seed);
    std::vector<hlo::Literal> arguments;
    for (int k = 0; k < 2; ++k) {
      hlo::Literal x(Shape::array(DType::F32, {8}));
      for (float& v : x.mutable_data<float>()) v = static_cast<float>(random() % 1000);
      arguments.push_back(std::move(x));
    }
    const auto before = parse(text);
    const auto wanted = interp::interpret(*before, arguments);
    ASSERT_TRUE(wanted) << wanted.error().message();
    const After a = separated(text);
    const auto got = interp::interpret(*a.module, arguments);
    ASSERT_TRUE(got);
    for (std::int64_t leaf = 0; leaf < 2; ++leaf) {
      const auto x = hlo::leaves(*wanted)[static_cast<std::size_t>(leaf)], y = hlo::leaves(*got)[static_cast<std::size_t>(leaf)];
      EXPECT_TRUE(std::ranges::equal(x->data<float>(), y->data<float>())) << text;
    }
  }
}

}  // namespace
}  // namespace hloom::passes
