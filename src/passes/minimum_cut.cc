// Dinic's algorithm: shortest augmenting paths in layers (Dinic 1970).
#include "passes/minimum_cut.h"

#include <algorithm>
#include <cstddef>

namespace hloom::passes {

namespace {
constexpr double kNothing = 1e-6;  // of rounding, in bytes
}

void MinimumCut::arc(int from, int to, double capacity) {
  const auto add = [&](int a, int b, double c) {
    arcs_.push_back({b, first_[static_cast<std::size_t>(a)], c});
    first_[static_cast<std::size_t>(a)] = static_cast<int>(arcs_.size()) - 1;
  };
  add(from, to, capacity);
  add(to, from, 0);
}

void MinimumCut::add_vertex(int v, double near_cost, double far_cost) {
  const double common = std::min(near_cost, far_cost);
  if (far_cost > common) arc(near(), v, far_cost - common);
  if (near_cost > common) arc(v, far(), near_cost - common);
}

void MinimumCut::add_edge(int a, int b, double cost) {
  if (cost > 0) arc(a, b, cost);
}

bool MinimumCut::measure() {
  level_.assign(first_.size(), -1);
  std::vector<int> queue = {near()};
  level_[static_cast<std::size_t>(near())] = 0;
  for (std::size_t n = 0; n < queue.size(); ++n)
    for (int a = first_[static_cast<std::size_t>(queue[n])]; a >= 0; a = arcs_[static_cast<std::size_t>(a)].next) {
      const Arc& along = arcs_[static_cast<std::size_t>(a)];
      int& level = level_[static_cast<std::size_t>(along.to)];
      if (along.left <= kNothing || level >= 0) continue;
      level = level_[static_cast<std::size_t>(queue[n])] + 1;
      queue.push_back(along.to);
    }
  return level_[static_cast<std::size_t>(far())] >= 0;
}

// One path at a time, without recursion: graphs are as deep as programs are long.
double MinimumCut::push(int from, double amount) {
  std::vector<int> path;  // arcs
  int v = from;
  while (v != far()) {
    int& a = at_[static_cast<std::size_t>(v)];
    while (a >= 0 && (arcs_[static_cast<std::size_t>(a)].left <= kNothing ||
                      level_[static_cast<std::size_t>(arcs_[static_cast<std::size_t>(a)].to)] !=
                          level_[static_cast<std::size_t>(v)] + 1))
      a = arcs_[static_cast<std::size_t>(a)].next;
    if (a >= 0) {
      path.push_back(a);
      v = arcs_[static_cast<std::size_t>(a)].to;
      continue;
    }
    if (path.empty()) return 0;
    level_[static_cast<std::size_t>(v)] = -1;  // leads nowhere
    v = arcs_[static_cast<std::size_t>(path.back() ^ 1)].to;
    path.pop_back();
  }
  for (const int a : path) amount = std::min(amount, arcs_[static_cast<std::size_t>(a)].left);
  for (const int a : path) {
    arcs_[static_cast<std::size_t>(a)].left -= amount;
    arcs_[static_cast<std::size_t>(a ^ 1)].left += amount;
  }
  return amount;
}

std::vector<bool> MinimumCut::solve() {
  while (measure()) {
    at_ = first_;
    while (push(near(), 1e300) > 0) {
    }
  }
  // After the last measure what is reached is near; everything else would be far, but whatever does not reach the far
  // end may as well be near: fewest far.
  std::vector<bool> reaches(first_.size(), false);
  std::vector<int> queue = {far()};
  reaches[static_cast<std::size_t>(far())] = true;
  for (std::size_t n = 0; n < queue.size(); ++n)
    for (int a = first_[static_cast<std::size_t>(queue[n])]; a >= 0; a = arcs_[static_cast<std::size_t>(a)].next) {
      const auto back = static_cast<std::size_t>(a ^ 1);
      const auto to = static_cast<std::size_t>(arcs_[static_cast<std::size_t>(a)].to);
      if (arcs_[back].left <= kNothing || reaches[to]) continue;
      reaches[to] = true;
      queue.push_back(arcs_[static_cast<std::size_t>(a)].to);
    }
  reaches.resize(first_.size() - 2);
  return reaches;
}

}  // namespace hloom::passes
