// Steps that need nothing of each other: which they are, by brute force, and that memory keeps them apart only where
// that saves what was not to be spent.
#include "buffers/concurrency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "buffers/test_plan.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kElements = Concurrency::kLargeBytes / 4;

std::string array(std::int64_t n = kElements) { return "f32[" + std::to_string(n) + "]"; }

// Two chains side by side; the order goes through one, then through the other.
std::string two_chains(int links, std::int64_t n = kElements) {
  std::string text = "HloModule chains, is_scheduled=true\nENTRY e {\n  p = " + array(n) + " parameter(0)\n  q = " + array(n) + " parameter(1)\n";
  for (const std::string chain : {"a", "b"})
    for (int k = 0; k < links; ++k) {
      const std::string from = k == 0 ? (chain == "a" ? "p" : "q") : chain + std::to_string(k - 1);
      text += "  " + chain + std::to_string(k) + " = " + array(n) + " reverse(" + from + "), dimensions={0}\n";
    }
  const std::string last = std::to_string(links - 1);
  return text + "  ROOT r = " + array(n) + " add(a" + last + ", b" + last + ") }\n";
}

Plan plan_with(std::string_view text, std::int64_t concurrency_bytes, std::int64_t limit_bytes = 0) {
  auto module = text::parse_module(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().message());
  auto assignment = assign(**module, {.place = {.concurrency_bytes = concurrency_bytes, .limit_bytes = limit_bytes}});
  EXPECT_TRUE(assignment);
  Plan result{*std::move(module), *std::move(assignment)};
  expect_sound(result);
  return result;
}

TEST(Concurrency, IsSpentOnAsFarAsTheBudgetGoes) {
  const Plan tight = plan_with(two_chains(3), 0);
  const PairCounts none = count_pairs(tight.assignment);
  EXPECT_EQ(none.all, 9u);
  EXPECT_GT(none.kept_apart, 0u);
  // The first chain's end and two of the second's, of which one lies in the result's memory.
  EXPECT_EQ(tight.assignment.arena_bytes(), 2 * 4 * kElements);
  const Plan loose = plan_with(two_chains(3), 16 * kElements);
  EXPECT_EQ(count_pairs(loose.assignment).kept_apart, 0u);
  EXPECT_EQ(loose.assignment.arena_bytes(), 3 * 4 * kElements);  // two of each chain
  EXPECT_EQ(plan_with(two_chains(3), 4 * kElements).assignment.arena_bytes(), 3 * 4 * kElements);
  EXPECT_EQ(plan_with(two_chains(3), 4 * kElements - 1).assignment.arena_bytes(), 2 * 4 * kElements) << "a byte too few";
}

TEST(Concurrency, IsNotBoughtBeyondTheLimit) {
  const std::int64_t total = plan_with(two_chains(3), 16 * kElements).assignment.total_bytes();
  EXPECT_EQ(count_pairs(plan_with(two_chains(3), 16 * kElements, total).assignment).kept_apart, 0u);
  EXPECT_GT(count_pairs(plan_with(two_chains(3), 16 * kElements, total - 1).assignment).kept_apart, 0u);
}

TEST(Concurrency, IsKeptWhereItCostsNothing) {
  // Both have to be kept for the end, so neither needs to lie where the other did.
  const Plan plan = plan_with("HloModule free, is_scheduled=true\nENTRY e { p = " + array() + " parameter(0)\n  a = " + array() +
                                  " reverse(p), dimensions={0}\n  b = " + array() + " negate(p)\n  ROOT r = " + array() + " add(a, b) }\n",
                              0);
  EXPECT_EQ(count_pairs(plan.assignment).all, 1u);
  EXPECT_EQ(count_pairs(plan.assignment).kept_apart, 0u);
}

TEST(Concurrency, OfSmallStepsIsNotLookedAt) {
  EXPECT_EQ(count_pairs(plan_with(two_chains(3, kElements / 2 - 1), 1 << 20).assignment).all, 0u);
  EXPECT_EQ(count_pairs(plan_with(two_chains(3, kElements / 2), 1 << 20).assignment).all, 9u);
}

TEST(Concurrency, AnElementwiseStepWritesOverNothingThatAnIndependentOneReads) {
  const std::string text = "HloModule over, is_scheduled=true\nENTRY e { p = " + array() + " parameter(0)\n  x = " + array() +
                           " reverse(p), dimensions={0}\n  s = " + array() + " reverse(x), dimensions={0}\n  n = " + array() +
                           " negate(x)\n  t = " + array() + " exponential(n)\n  u = " + array() + " add(s, t)\n  ROOT r = f32[1] slice(u), slice={[0:1]} }\n";
  const Plan tight = plan_with(text, 0), loose = plan_with(text, 16 * kElements);
  EXPECT_EQ(tight.slice("n"), tight.slice("x"));
  EXPECT_NE(loose.slice("n"), loose.slice("x"));
  EXPECT_EQ(count_pairs(loose.assignment).kept_apart, 0u);
}

// Paths over operands, tuples and bitcasts, and over control edges.
bool needs(const Instruction& later, const Instruction& earlier, std::set<const Instruction*>& seen) {
  if (&later == &earlier) return true;
  if (!seen.insert(&later).second) return false;
  const auto any = [&](const auto& before) {
    return std::ranges::any_of(before, [&](const Instruction* b) { return needs(*b, earlier, seen); });
  };
  return any(later.operands()) || any(later.control_predecessors());
}

// A program of large and small steps, some behind others by control edges; the order is that in which they are made.
std::unique_ptr<hlo::Module> random_program(unsigned seed) {
  std::mt19937 random(seed);
  auto module = std::make_unique<hlo::Module>("m");
  Computation* c = module->add_computation("e");
  const Shape large = Shape::array(DType::F32, {kElements}), small = Shape::array(DType::F32, {16});
  std::vector<Instruction*> larges{c->add_parameter(0, large)}, smalls{c->add_parameter(1, small)}, all;
  for (int k = 0; k < 24; ++k) {
    auto& made = random() % 3 == 0 ? smalls : larges;
    Instruction* i = c->add(Opcode::Add, made.front()->shape(), {made[random() % made.size()], made[random() % made.size()]});
    if (!all.empty() && random() % 4 == 0) i->add_control_predecessor(all[random() % all.size()]);
    made.push_back(i);
    all.push_back(i);
  }
  std::vector<Instruction*> last;
  for (Instruction* i : all)
    if (i->users().empty()) last.push_back(i);
  c->set_root(c->add_tuple(last));
  module->set_entry(c);
  module->sort();
  return module;
}

TEST(Concurrency, PairsAreThoseWithoutAPath) {
  for (unsigned seed = 0; seed < 40; ++seed)
    for (const int reach : {1, 5, Concurrency::kMostReach}) {
      const auto module = random_program(seed);
      const Flow flow(*module);
      std::set<Concurrency::Pair> expected;
      std::vector<const Instruction*> steps;
      for (const Instruction& i : module->entry()->instructions())
        if (i.opcode() == Opcode::Add) steps.push_back(&i);
      for (std::size_t b = 0; b < steps.size(); ++b)
        for (std::size_t a = b - std::min<std::size_t>(b, static_cast<std::size_t>(reach)); a < b; ++a) {
          std::set<const Instruction*> seen;
          const bool large = steps[a]->shape().dim(0) == kElements && steps[b]->shape().dim(0) == kElements;
          if (large && !needs(*steps[b], *steps[a], seen)) expected.emplace(steps[a], steps[b]);
        }
      const Concurrency concurrency(flow, reach);
      EXPECT_EQ(std::set(concurrency.pairs().begin(), concurrency.pairs().end()), expected) << seed << " " << reach;
    }
}

TEST(Concurrency, RandomProgramsHoldWithAndWithoutIt) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::int64_t least = 0;
    for (const std::int64_t spent : {std::int64_t{0}, std::int64_t{3} * 4 * kElements, std::int64_t{1} << 40}) {
      auto module = random_program(seed);
      auto assignment = assign(*module, {.place = {.concurrency_bytes = spent}});
      ASSERT_TRUE(assignment);
      const Plan plan{std::move(module), *std::move(assignment)};
      expect_sound(plan);
      if (spent == 0) least = plan.assignment.arena_bytes();
      EXPECT_LE(plan.assignment.arena_bytes(), least + spent) << seed;
      const bool is_all_bought = spent > std::int64_t{1} << 30;
      EXPECT_TRUE(!is_all_bought || count_pairs(plan.assignment).kept_apart == 0) << seed;
    }
  }
}

TEST(Concurrency, EndsAtLoopsAndIsCountedInThem) {
  const std::string a = array();
  const Plan plan = plan_with("HloModule loops, is_scheduled=true\nbody { c = (s32[], " + a + ") parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n  x = " + a +
                                  " get-tuple-element(c), index=1\n  l = " + a + " reverse(x), dimensions={0}\n  m = " + a +
                                  " negate(x)\n  y = " + a + " add(l, m)\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  ROOT t = (s32[], " + a +
                                  ") tuple(j, y) }\ncond { c = (s32[], " + a +
                                  ") parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n  n = s32[] constant(3)\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
                                  "ENTRY e { p = " + a + " parameter(0)\n  z = s32[] constant(0)\n  before = " + a + " reverse(p), dimensions={0}\n  t = (s32[], " + a +
                                  ") tuple(z, p)\n  w = (s32[], " + a + ") while(t), condition=cond, body=body\n  x = " + a +
                                  " get-tuple-element(w), index=1\n  behind = " + a + " negate(p)\n  s = " + a + " add(before, behind)\n  ROOT r = " + a + " add(s, x) }\n",
                              0);
  const Flow flow(*plan.module);
  std::set<std::string> pairs;
  const Concurrency concurrency(flow, Concurrency::kMostReach);
  for (const auto& [before, behind] : concurrency.pairs())
    pairs.insert(before->name() + " " + behind->name());
  EXPECT_TRUE(pairs.contains("l m"));
  EXPECT_FALSE(pairs.contains("before behind")) << "there is a loop between them";
}

}  // namespace
}  // namespace hloom::buffers
