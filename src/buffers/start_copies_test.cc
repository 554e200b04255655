// Copies between memory spaces that go on beside other work.
#include "buffers/start_copies.h"

#include <gmock/gmock.h>

#include "buffers/test_plan.h"

namespace hloom::buffers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The order of what does work in a computation.
std::vector<std::string> order(const Plan& p, std::string_view computation = "e") {
  std::vector<std::string> names;
  for (const hlo::Computation& c : p.module->computations())
    for (const hlo::Instruction& i : c.instructions())
      if (c.name() == computation && i.opcode() != hlo::Opcode::Parameter && i.opcode() != hlo::Opcode::Constant &&
          (!is_alias(i) || i.opcode() == hlo::Opcode::CopyDone))
        names.push_back(i.name());
  return names;
}

// Sines so that nothing is elided; all arrays are f32[100000], `A`, or in space 5, `H`.
std::string module_of(std::string text) {
  for (const auto& [letter, shape] : {std::pair("A ", "f32[100000]{0} "), {"H ", "f32[100000]{0:S(5)} "}})
    for (std::size_t at; (at = text.find(letter)) != std::string::npos;) text.replace(at, 2, shape);
  return "HloModule m, is_scheduled=true\nENTRY e {\n" + text + "\n}\n";
}

TEST(StartCopies, AFetchStartsEarlyEnoughAndIsAwaitedWhereItIsWanted) {
  const Plan p = plan(module_of("x = H parameter(0) y = A parameter(1) a = A sine(y) b = A cosine(a) w = A copy(x) c = A tan(b)\n"
                                "ROOT r = A add(w, c)"));
  EXPECT_THAT(order(p), ElementsAre("a", "w.start", "b", "c", "w.done", "r"));
}

TEST(StartCopies, WhatGoesAwayStartsWhereItStood) {
  const Plan p = plan(module_of("y = A parameter(0) a = A sine(y) b = A cosine(a) w = H copy(a) c = A tan(b)\n"
                                "ROOT r = (f32[100000]{0:S(5)}, f32[100000]{0}) tuple(w, c)"));
  EXPECT_THAT(order(p), ElementsAre("a", "b", "w.start", "c", "w.done"));
}

TEST(StartCopies, WithNothingBesideOrSmallTheyStayCopies) {
  EXPECT_THAT(order(plan(module_of("x = H parameter(0) y = A parameter(1) w = A copy(x)\nROOT r = A add(w, y)"))),
              ElementsAre("w", "r"));
  std::string small = module_of("x = H parameter(0) y = A parameter(1) a = A sine(y) w = A copy(x)\nROOT r = A add(w, a)");
  for (std::size_t at; (at = small.find("100000")) != std::string::npos;) small.replace(at, 6, "1000");
  EXPECT_THAT(order(plan(small)), ElementsAre("a", "w", "r"));
  // In one space it is no transfer.
  EXPECT_THAT(order(plan(module_of("x = A parameter(0) a = A sine(x) w = A copy(x) b = A cosine(a)\n"
                                   "ROOT r = (f32[100000]{0}, f32[100000]{0}) tuple(w, b)"))),
              testing::Not(testing::Contains("w.start")));
}

TEST(StartCopies, AreDoneBeforeTheirSourceIsWrittenOver) {
  const Plan p = plan(module_of("y = A parameter(0) i = s32[] parameter(1) u = f32[5]{0} parameter(2) a = A sine(y)\n"
                                "w = H copy(a) b = A cosine(y) d = A dynamic-update-slice(a, u, i) c = A tan(b)\n"
                                "ROOT r = (f32[100000]{0:S(5)}, f32[100000]{0}, f32[100000]{0}) tuple(w, c, d)"));
  EXPECT_THAT(order(p), ElementsAre("a", "w.start", "b", "w.done", "d", "c"));
  EXPECT_THAT(p.copies(), IsEmpty());
}

TEST(StartCopies, StartInBodiesOfLoops) {
  const Plan p = plan(
      "HloModule m, is_scheduled=true\n"
      "body { q = (s32[], f32[100000]{0:S(5)}, f32[100000]{0}) parameter(0) i = s32[] get-tuple-element(q), index=0\n"
      "h = f32[100000]{0:S(5)} get-tuple-element(q), index=1 v = f32[100000]{0} get-tuple-element(q), index=2\n"
      "one = s32[] constant(1) j = s32[] add(i, one) s = f32[100000]{0} sine(v) w = f32[100000]{0} copy(h)\n"
      "n = f32[100000]{0} add(s, w) ROOT t = (s32[], f32[100000]{0:S(5)}, f32[100000]{0}) tuple(j, h, n) }\n"
      "cond { q = (s32[], f32[100000]{0:S(5)}, f32[100000]{0}) parameter(0) i = s32[] get-tuple-element(q), index=0\n"
      "k = s32[] constant(9) ROOT c = pred[] compare(i, k), direction=LT }\n"
      "ENTRY e { x = f32[100000]{0:S(5)} parameter(0) y = f32[100000]{0} parameter(1) z = s32[] constant(0)\n"
      "t = (s32[], f32[100000]{0:S(5)}, f32[100000]{0}) tuple(z, x, y)\n"
      "l = (s32[], f32[100000]{0:S(5)}, f32[100000]{0}) while(t), condition=cond, body=body\n"
      "ROOT r = f32[100000]{0} get-tuple-element(l), index=2 }\n");
  EXPECT_THAT(order(p, "body"), ElementsAre("j", "w.start", "s", "w.done", "n"));
}

// Both ends are known: what is made in between may lie neither over the source nor over the destination.
TEST(StartCopies, TheCheckerSeesWhatIsWrittenOverACopyOnItsWay) {
  const std::string used = module_of(
      "y = A parameter(0) a = A sine(y) w = H copy(a) b = A cosine(y) v = H sine(b) c = A tan(v) k = A add(c, w)\n"
      "ROOT r = A sine(k)");
  Plan over_source = plan(used), over_destination = plan(used);
  ASSERT_THAT(order(over_source), ElementsAre("a", "w.start", "b", "v", "c", "w.done", "k", "r"));
  over_source.assignment.set_slice(over_source.find("b"), 0, over_source.slice("a"));
  EXPECT_THAT(check_assignment(over_source.assignment), testing::Not(IsEmpty()));
  over_destination.assignment.set_slice(over_destination.find("v"), 0, over_destination.slice("w.start", 0));
  EXPECT_THAT(check_assignment(over_destination.assignment), testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace hloom::buffers
