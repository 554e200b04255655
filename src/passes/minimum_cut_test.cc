#include "passes/minimum_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hloom::passes {
namespace {

struct Edge {
  int a, b;
  double cost;
};
struct Problem {
  std::vector<double> near_cost, far_cost;
  std::vector<Edge> edges;

  double cost(const std::vector<bool>& far) const {
    double sum = 0;
    for (std::size_t v = 0; v < far.size(); ++v) sum += far[v] ? far_cost[v] : near_cost[v];
    for (const Edge& e : edges)
      if (!far[static_cast<std::size_t>(e.a)] && far[static_cast<std::size_t>(e.b)]) sum += e.cost;
    return sum;
  }
};

// Against all splits there are.
TEST(MinimumCut, IsTheCheapestSplitWithTheFewestFar) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    const int n = 1 + below(7);
    Problem p;
    for (int v = 0; v < n; ++v) p.near_cost.push_back(below(6) - 2), p.far_cost.push_back(below(6) - 2);
    for (int e = below(14); e > 0; --e) p.edges.push_back({below(static_cast<unsigned>(n)), below(static_cast<unsigned>(n)), below(5) + 0.0});
    MinimumCut cut(n);
    for (int v = 0; v < n; ++v) cut.add_vertex(v, p.near_cost[static_cast<std::size_t>(v)], p.far_cost[static_cast<std::size_t>(v)]);
    for (const Edge& e : p.edges) cut.add_edge(e.a, e.b, e.cost);
    const std::vector<bool> got = cut.solve();
    double least = 1e9;
    std::ptrdiff_t fewest = 0;
    for (unsigned bits = 0; bits < (1u << n); ++bits) {
      std::vector<bool> far;
      for (int v = 0; v < n; ++v) far.push_back((bits >> v & 1) != 0);
      const std::ptrdiff_t count = std::ranges::count(far, true);
      if (p.cost(far) < least || (p.cost(far) == least && count < fewest)) least = p.cost(far), fewest = count;
    }
    ASSERT_EQ(p.cost(got), least) << "round " << round;
    ASSERT_EQ(std::ranges::count(got, true), fewest) << "round " << round;
  }
}

}  // namespace
}  // namespace hloom::passes
