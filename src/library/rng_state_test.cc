#include "library/rng_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace hloom::library {
namespace {

struct Words {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Words&) const = default;
};

Words take(const RoutinePlan& plan) {
  Words words;
  EXPECT_TRUE(run(plan, {}, {&words}));
  return words;
}

TEST(RngState, GivesTheStateAndMovesItOn) {
  const auto state = std::make_shared<RngStates>(1);
  const RoutinePlan five = plan_rng_state(state, 5), back = plan_rng_state(state, -7);
  EXPECT_EQ(take(five), (Words{1, 0}));
  EXPECT_EQ(take(back), (Words{6, 0}));
  EXPECT_EQ(take(five), (Words{~0ull, ~0ull}));
  EXPECT_EQ(take(five), (Words{4, 0}));
}

TEST(RngState, CarriesIntoTheHighWord) {
  const auto state = std::make_shared<RngStates>(RngStates{{0, ~0ull, 3}});
  EXPECT_EQ(take(plan_rng_state(state, 1)), (Words{~0ull, 3}));
  EXPECT_EQ(take(plan_rng_state(state, 1)), (Words{0, 4}));
}

TEST(RngState, GivesEachThreadItsOwn) {
  constexpr int kThreads = 4, kDraws = 2000;
  const RoutinePlan plan = plan_rng_state(std::make_shared<RngStates>(1), 1);
  std::vector<std::uint64_t> drawn(kThreads * kDraws);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < kDraws; ++n) drawn[static_cast<std::size_t>(t * kDraws + n)] = take(plan).low;
    });
  for (std::thread& t : threads) t.join();
  std::ranges::sort(drawn);
  for (std::size_t n = 0; n < drawn.size(); ++n) ASSERT_EQ(drawn[n], n + 1);
}

}  // namespace
}  // namespace hloom::library
