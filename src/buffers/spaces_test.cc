// Memory spaces in the plan of the memory: each has an arena of its own, and its own alignment.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "buffers/test_plan.h"

namespace hloom::buffers {
namespace {

using Kind = Allocation::Kind;

std::int64_t space(const Plan& p, std::string_view name) { return p.assignment.allocation(p.slice(name)).space; }

// A chain of values, each dead when the next but one is made, through memory spaces. Sines so that nothing is elided.
std::string chain(const std::vector<int>& spaces) {
  std::string text = "HloModule m, is_scheduled=true\nENTRY e {\n v0 = f32[100] parameter(0)\n";
  for (std::size_t n = 0; n < spaces.size(); ++n)
    text += " v" + std::to_string(n + 1) + " = f32[100]{0:S(" + std::to_string(spaces[n]) + ")} reverse(v" +
            std::to_string(n) + "), dimensions={0}\n";
  return text + " ROOT r = f32[1] slice(v" + std::to_string(spaces.size()) + "), slice={[5:6]}\n}\n";
}

TEST(Spaces, ValuesOfDifferentColoursNeverShare) {
  const Plan p = plan(chain({0, 1, 2, 5, 0, 1, 2, 5, 0, 1, 2, 5}));
  std::set<std::int32_t> arenas;
  for (int n = 1; n <= 12; ++n) {
    const std::string name = "v" + std::to_string(n);
    EXPECT_EQ(space(p, name), p.find(name).shape().layout().memory_space()) << name;
    arenas.insert(p.slice(name).allocation);
    if (n > 4) {
      EXPECT_EQ(p.slice(name), p.slice("v" + std::to_string(n - 4))) << name << " could lie there";
    }
  }
  EXPECT_EQ(arenas.size(), 4u);
  std::int64_t bytes = 0;
  for (const Allocation& a : p.assignment.allocations())
    if (a.kind == Kind::Arena) bytes += a.bytes;
  EXPECT_EQ(p.assignment.arena_bytes(), bytes);
  EXPECT_EQ(bytes, 1600);
}

TEST(Spaces, OneColourSharesOneArena) {
  const Plan p = plan(chain({5, 5, 5, 5}));
  EXPECT_EQ(p.slice("v1"), p.slice("v3"));
  EXPECT_EQ(p.assignment.allocations()[0].bytes, 0);
  EXPECT_EQ(p.assignment.arena_bytes(), 400 + 400 + 48);  // each at a line
}

TEST(Spaces, AlignmentGoesByColour) {
  for (const auto& [space_number, alignment] : {std::pair(0, 4), {1, 128}, {2, 4096}, {5, 64}}) {
    const std::string s = "f32[]{:S(" + std::to_string(space_number) + ")} ";
    const Plan p = plan("HloModule m, is_scheduled=true\nENTRY e {\n x = f32[] parameter(0)\n a = " + s +
                        "sine(x)\n b = " + s + "cosine(x)\n c = " + s + "tan(x)\n d = " + s +
                        "add(a, b)\n f = " + s + "add(d, c)\n ROOT r = f32[3] broadcast(f), dimensions={}\n}\n");
    std::set<std::int64_t> offsets;
    for (const char* name : {"a", "b", "c"}) offsets.insert(p.slice(name).offset);
    EXPECT_EQ(offsets, (std::set<std::int64_t>{0, alignment, 2 * alignment})) << space_number;
  }
}

// Values of many sizes and lives: each begins where its space asks for, and at a multiple of what its size does (a line,
// or the next power of two).
TEST(Spaces, EveryBlockBeginsWhereItsColourAsksFor) {
  const std::map<std::int64_t, std::int64_t> alignments = {{0, 1}, {1, 128}, {2, 4096}, {5, 64}};
  std::mt19937 random(3);
  std::string text = "HloModule m, is_scheduled=true\nENTRY e {\n x = f64[] parameter(0)\n", sum = "x", after;
  const auto add_up = [&](int n) {
    const std::string v = std::to_string(n);
    after += " n" + v + " = f64[] custom-call(" + sum + ", v" + v + "), custom_call_target=\"t\"\n";
    sum = "n" + v;
  };
  for (int n = 0; n < 80; ++n) {
    const std::int64_t space_number = std::next(alignments.begin(), n % 4)->first, size = std::uniform_int_distribution(1, n % 3 == 0 ? 9000 : 40)(random);
    text += " v" + std::to_string(n) + " = " + (n % 5 == 0 ? "f64[" : "u8[") + std::to_string(size) + "]{0:S(" + std::to_string(space_number) +
            ")} iota(), iota_dimension=0\n";
    add_up(n);
    if (n % 7 == 0) text += std::exchange(after, "");
  }
  const Plan p = plan(text + after + " ROOT r = f64[1] reshape(" + sum + ")\n}\n");
  std::map<std::int64_t, int> seen;
  for (const ArenaBlock& b : p.assignment.blocks()) {
    if (!p.assignment.is_in_arena(b)) continue;
    const std::int64_t in = p.assignment.allocations()[static_cast<std::size_t>(b.allocation)].space;
    ASSERT_TRUE(alignments.contains(in));
    EXPECT_EQ(b.offset % std::max(alignments.at(in), alignment_of(b.bytes)), 0) << b.values.front() << " in space " << in;
    ++seen[in];
  }
  for (const auto& [in, alignment] : alignments) EXPECT_GE(seen[in], 20) << in;
}

// An elementwise result may lie over its operand, and an update over its base, within one space only.
TEST(Spaces, NothingIsWrittenOverAnotherColour) {
  const Plan p = plan(
      "HloModule m, is_scheduled=true\nENTRY e {\n x = f32[100] parameter(0) i = s32[] parameter(1)\n"
      " a = f32[100]{0:S(5)} reverse(x), dimensions={0}\n b = f32[100] negate(a)\n"
      " u = f32[1] slice(x), slice={[0:1]}\n"
      " c = f32[100]{0:S(2)} dynamic-update-slice(b, u, i)\n ROOT r = f32[1] slice(c), slice={[5:6]}\n}\n");
  EXPECT_EQ(space(p, "a"), 5);
  EXPECT_EQ(space(p, "b"), 0);
  EXPECT_EQ(space(p, "c"), 2);
}

TEST(Spaces, ParametersAndResultsHaveThoseOfTheirLayouts) {
  const Plan p = plan(
      "HloModule m\nENTRY e {\n x = f32[100]{0:S(5)} parameter(0)\n"
      " a = f32[100]{0:S(2)} reverse(x), dimensions={0}\n ROOT r = f32[100]{0:S(2)} negate(a)\n}\n");
  EXPECT_EQ(space(p, "x"), 5);
  EXPECT_EQ(p.slice("a"), p.slice("r"));  // in the result's memory
  EXPECT_EQ(space(p, "r"), 2);
  EXPECT_EQ(p.assignment.arena_bytes(), 0);
}

TEST(Spaces, TheCheckerSeesAValueInAnotherSpace) {
  Plan p = plan(chain({5, 5, 5}));
  ASSERT_TRUE(check_assignment(p.assignment).empty());
  p.assignment.set_slice(p.find("v1"), 0, {0, 0, 400});
  EXPECT_THAT(check_assignment(p.assignment),
              testing::Contains(testing::HasSubstr("v1{0}: has memory space 5, and lies in 0")));
}

}  // namespace
}  // namespace hloom::buffers
