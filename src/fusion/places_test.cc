// A kernel's places are counted as the fusion that asks for them needs.
#include "fusion/places.h"

#include <gtest/gtest.h>

#include "text/parse.h"

namespace hloom::fusion {
namespace {

using hlo::Instruction;

// All of an entry computation's instructions as one kernel, but for parameters, and how often it needs parameter `name`.
Places::Count needed(const std::string& body, const std::string& name) {
  auto module = text::parse_module("ENTRY e { " + body + " }");
  EXPECT_TRUE(module) << module.error().message();
  std::vector<Instruction*> order = (*module)->entry()->post_order();
  Places places;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    if ((*i)->name() == name) return places.count(**i);
    (*i)->is_root() ? places.add_root(**i) : places.add(**i);
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

std::string roll_and_add(const std::string& from, const std::string& to) {
  return to + "l = f32[7] slice(" + from + "), slice={[0:7]}\n" + to + "h = f32[1] slice(" + from + "), slice={[7:8]}\n" + to +
         "r = f32[8] concatenate(" + to + "h, " + to + "l), dimensions={0}\n " + to + " = f32[8] add(" + from + ", " + to + "r)\n";
}

TEST(Places, ElementwiseUsersNeedOne) {
  const auto count = needed("p = f32[8] parameter(0)\n a = f32[8] negate(p)\n b = f32[8] sine(p)\n ROOT s = f32[8] add(a, b)", "p");
  EXPECT_EQ(count.places, 1u);
  EXPECT_EQ(count.elements, 1);
  EXPECT_EQ(count.spread, 0);
}

TEST(Places, PiecesShareAnElement) {
  const auto count = needed("p = f32[8] parameter(0)\n" + roll_and_add("p", "a") + "ROOT z = f32[8] negate(a)", "p");
  EXPECT_EQ(count.places, 3u);
  EXPECT_EQ(count.elements, 2);
}

TEST(Places, ATowerNeedsTwiceAsManyWithEachFloor) {
  std::string body = "p = f32[8] parameter(0)\n" + roll_and_add("p", "a");
  body += roll_and_add("a", "b") + roll_and_add("b", "c") + "ROOT z = f32[8] negate(c)";
  EXPECT_EQ(needed(body, "p").places, 27u);
  EXPECT_EQ(needed(body, "p").elements, 8);
}

TEST(Places, EqualSlicesLeadToOnePlace) {
  const auto count = needed(
      "p = f32[8] parameter(0)\n a = f32[4] slice(p), slice={[0:8:2]}\n b = f32[4] slice(p), slice={[0:8:2]}\n"
      " c = f32[4] slice(p), slice={[1:8:2]}\n d = f32[4] add(a, b)\n ROOT s = f32[4] add(d, c)", "p");
  EXPECT_EQ(count.places, 2u);
}

TEST(Places, WhatIsInterleavedIsSpread) {
  const auto text = [](const char* dims, const char* doubled) {
    return std::string("p = f32[") + dims + "] parameter(0)\n q = f32[" + dims + "] negate(p)\n ROOT s = f32[" + doubled + "] concatenate(p, q), dimensions={1}";
  };
  EXPECT_EQ(needed(text("64,1", "64,2"), "p").spread, 1);
  EXPECT_EQ(needed(text("64,1,4", "64,2,4"), "p").spread, 1);
  EXPECT_EQ(needed(text("64,1,32", "64,2,32"), "p").spread, 0);
  EXPECT_EQ(needed(text("64,40", "64,80"), "p").spread, 0);
  EXPECT_EQ(needed(text("1,1", "1,2"), "p").spread, 0) << "two pieces, each one run";
}

TEST(Places, WhatIsReadBetweenPaddingIsSpread) {
  const auto count = needed(
      "p = f32[4] parameter(0)\n q = f32[4] negate(p)\n z = f32[] constant(0)\n ROOT s = f32[7] pad(q, z), padding=0_0_1", "p");
  EXPECT_EQ(count.spread, 1);
  EXPECT_NEAR(count.elements, 4.0 / 7, 1e-12);
}

}  // namespace
}  // namespace hloom::fusion
