#include "runtime/graph.h"

#include <algorithm>
#include <bitset>

#include "base/check.h"

namespace hloom::runtime {
namespace {

using Nodes = std::bitset<kMaxGraphNodes>;

bool conflict(const Access& a, const Access& b) {
  return (a.written || b.written) && a.memory == b.memory && std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

bool conflict(const Task& a, const Task& b) {
  if (a.ordered && b.ordered) return true;
  return std::ranges::any_of(a.accesses, [&](const Access& x) {
    return std::ranges::any_of(b.accesses, [&](const Access& y) { return conflict(x, y); });
  });
}

}  // namespace

std::optional<Graph> make_graph(std::span<const Task> tasks) {
  HLOOM_CHECK(tasks.size() <= kMaxGraphNodes);
  Graph graph;
  std::vector<Nodes> before(tasks.size());             // all that must be done first
  std::vector<std::vector<std::uint32_t>> next(tasks.size());
  bool overlap = false;
  for (std::size_t j = 0; j < tasks.size(); ++j) {
    GraphNode node{tasks[j].operation, tasks[j].parts, 0, 0, 0, tasks[j].checked};
    // The latest first: what they wait for needs no edge of its own.
    for (std::size_t i = j; i-- > 0;) {
      if (before[j][i] || !conflict(tasks[i], tasks[j])) continue;
      before[j] |= before[i];
      before[j].set(i);
      next[i].push_back(static_cast<std::uint32_t>(j));
      ++node.waits_for;
    }
    for (std::size_t i = 0; i < j; ++i)
      overlap |= !before[j][i] && std::min(tasks[i].cost, tasks[j].cost) >= kLargeCost;
    graph.nodes.push_back(node);
  }
  if (!overlap) return std::nullopt;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    graph.nodes[i].first_next = static_cast<std::uint32_t>(graph.next.size());
    graph.nodes[i].num_next = static_cast<std::uint32_t>(next[i].size());
    graph.next.insert(graph.next.end(), next[i].begin(), next[i].end());
  }
  return graph;
}

}  // namespace hloom::runtime
