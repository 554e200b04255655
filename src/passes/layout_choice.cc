#include "passes/layout_choice.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "passes/minimum_cut.h"

namespace hloom::passes {
namespace {

constexpr std::size_t kMaxRegion = 2000;  // arrays of one trial
constexpr int kMaxTrials = 400;
constexpr int kMaxSweeps = 4;
constexpr double kOddShare = 1e-4;        // of an array's bytes: row-major is chosen where all else is equal
constexpr double kLeastGain = 0.5;        // bytes

class Chooser {
 public:
  explicit Chooser(LayoutGraph& graph) : g_(graph) {}

  void run() {
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep)
      if (!this->sweep()) return;
  }
  double total() const {
    double sum = 0;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) sum += own_cost(static_cast<int>(n), g_.nodes[n].order);
    for (const LayoutEdge& e : g_.edges) sum += cost(e, node(e.super).order, node(e.sub).order);
    return sum;
  }

 private:
  using Region = std::map<int, Order>;

  LayoutNode& node(int n) { return g_.nodes[static_cast<std::size_t>(n)]; }
  const LayoutNode& node(int n) const { return g_.nodes[static_cast<std::size_t>(n)]; }
  const LayoutEdge& edge(int e) const { return g_.edges[static_cast<std::size_t>(e)]; }

  double own_cost(int number, const Order& order) const {
    const LayoutNode& n = node(number);
    double cost = std::ranges::is_sorted(order) || n.fixed ? 0 : kOddShare * static_cast<double>(n.shape.size_bytes());
    if (!n.minor_cost.empty() && !order.empty()) cost += n.minor_cost[static_cast<std::size_t>(order.back())];
    return cost;
  }
  static double cost(const LayoutEdge& e, const Order& super, const Order& sub) {
    return e.sub_order(super) == sub ? 0 : e.bytes;
  }

  // Tries both ends of each edge whose ends lie differently, dearest first.
  bool sweep() {
    std::vector<int> differing;
    for (std::size_t e = 0; e < g_.edges.size(); ++e)
      if (!g_.agrees(g_.edges[e]) && g_.edges[e].bytes >= 1) differing.push_back(static_cast<int>(e));
    std::ranges::stable_sort(differing, [&](int a, int b) { return edge(a).bytes > edge(b).bytes; });
    bool changed = false;
    for (const int e : differing) {
      if (g_.agrees(edge(e)) || ++trials_ > kMaxTrials) continue;
      const LayoutEdge& at = edge(e);
      const bool sub = try_from(at.sub, at.super, at.sub_order(node(at.super).order));
      changed |= sub;
      if (!sub && at.is_whole()) changed |= try_from(at.super, at.sub, at.super_order(node(at.sub).order));
    }
    return changed;
  }

  // What lies as it should if `start` has the order.
  Region spread(int start, const Order& order) const {
    Region region = {{start, order}};
    std::vector<int> queue = {start};
    for (std::size_t n = 0; n < queue.size() && region.size() < kMaxRegion; ++n) {
      const Order here = region.at(queue[n]);
      for (const int number : node(queue[n]).edges) {
        const LayoutEdge& e = edge(number);
        const bool down = e.super == queue[n];
        if (!down && !e.is_whole()) continue;
        const int other = down ? e.sub : e.super;
        if (node(other).fixed || region.contains(other)) continue;
        Order wanted = down ? e.sub_order(here) : e.super_order(here);
        if (wanted.size() != node(other).order.size() || wanted == node(other).order) continue;
        region.emplace(other, std::move(wanted));
        queue.push_back(other);
      }
    }
    return region;
  }

  bool try_from(int start, int cause, const Order& order) {
    if (node(start).fixed || order.size() != node(start).order.size()) return false;
    const Region region = spread(start, order);
    const std::vector<bool> taken = best_part(region);
    const double before = cost_around(region);
    std::map<int, Order> old;
    std::size_t k = 0;
    for (const auto& [n, wanted] : region)
      if (taken[k++]) old.emplace(n, std::exchange(node(n).order, wanted));
    const double gain = before - cost_around(region);
    if (gain < kLeastGain) {
      for (auto& [n, was] : old) node(n).order = std::move(was);
      return false;
    }
    const std::string reason = reason_of(cause, gain);
    for (const auto& [n, was] : old) node(n).reason = reason;
    return true;
  }

  std::string reason_of(int cause, double gain) const {
    const hlo::Instruction* i = node(cause).instruction;
    return "as " + (i == nullptr ? std::string("a neighbour asks") : i->name() + " lies") + ": " +
           std::to_string(std::llround(gain)) + " bytes less to move";
  }

  // Of the region's arrays and all edges at them.
  double cost_around(const Region& region) const {
    double sum = 0;
    for (const auto& [n, wanted] : region) {
      sum += own_cost(n, node(n).order);
      for (const int number : node(n).edges) {
        const LayoutEdge& e = edge(number);
        const int other = e.super == n ? e.sub : e.super;
        if (other < n && region.contains(other)) continue;
        sum += cost(e, node(e.super).order, node(e.sub).order);
      }
    }
    return sum;
  }

  // Which arrays of the region take their new order (far) so that all together costs least.
  std::vector<bool> best_part(const Region& region) const {
    std::map<int, int> vertex;
    for (const auto& [n, wanted] : region) vertex.emplace(n, static_cast<int>(vertex.size()));
    std::vector<double> keep(region.size()), take(region.size());
    MinimumCut cut(static_cast<int>(region.size()));
    for (const auto& [n, wanted] : region) {
      const auto v = static_cast<std::size_t>(vertex.at(n));
      keep[v] += own_cost(n, node(n).order);
      take[v] += own_cost(n, wanted);
      for (const int number : node(n).edges) {
        const LayoutEdge& e = edge(number);
        const int other = e.super == n ? e.sub : e.super;
        const auto found = region.find(other);
        const auto at = [&](const Order& mine, const Order& its) {
          return e.super == n ? cost(e, mine, its) : cost(e, its, mine);
        };
        if (found == region.end()) {
          keep[v] += at(node(n).order, node(other).order);
          take[v] += at(wanted, node(other).order);
        } else if (n < other) {
          const auto w = static_cast<std::size_t>(vertex.at(other));
          const double both = at(wanted, found->second), mine = at(wanted, node(other).order),
                       its = at(node(n).order, found->second);
          // What no cut can say, if all four disagree in the wrong way, counts for less; gains are checked after.
          const double none = std::min(at(node(n).order, node(other).order), mine + its - both);
          keep[v] += none;
          take[v] += mine;
          take[w] += both - mine;
          cut.add_edge(static_cast<int>(v), static_cast<int>(w), its - none - (both - mine));
        }
      }
    }
    for (std::size_t v = 0; v < region.size(); ++v) cut.add_vertex(static_cast<int>(v), keep[v], take[v]);
    return cut.solve();
  }

  LayoutGraph& g_;
  int trials_ = 0;
};

}  // namespace

double layout_cost(const LayoutGraph& graph) {
  LayoutGraph copy = graph;
  return Chooser(copy).total();
}

void choose_layouts(LayoutGraph& graph) { Chooser(graph).run(); }

}  // namespace hloom::passes
