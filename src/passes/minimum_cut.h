// The cheapest way to split a graph in two.
#pragma once

#include <vector>

namespace hloom::passes {

/// Vertices on two sides, edges that cost if their ends part.
class MinimumCut {
 public:
  explicit MinimumCut(int vertices) : first_(static_cast<std::size_t>(vertices) + 2, -1) {}

  /// What it costs if `v` is on the near side, and on the far side.
  void add_vertex(int v, double near_cost, double far_cost);
  /// What it costs if `a` is near and `b` far.
  void add_edge(int a, int b, double cost);
  /// For each vertex whether it is on the far side in the cheapest split; of several the one with the fewest there.
  std::vector<bool> solve();

 private:
  struct Arc {
    int to, next;
    double left;
  };
  void arc(int from, int to, double capacity);
  bool measure();
  double push(int v, double amount);

  int near() const { return static_cast<int>(first_.size()) - 2; }
  int far() const { return static_cast<int>(first_.size()) - 1; }

  std::vector<int> first_, level_, at_;
  std::vector<Arc> arcs_;
};

}  // namespace hloom::passes
