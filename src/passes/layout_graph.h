// The layouts of a module's arrays as a graph: which arrays lie how, and what it costs if neighbours lie differently.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hloom::passes {

/// How an array lies: its dimensions of more than one element, outermost first.
using Order = std::vector<std::int64_t>;

Order order_of(const Shape& array);
/// The array in that order; dimensions of one element stand outermost where it is not row-major.
Shape in_order(Shape array, const Order&);

/// The leaf of an instruction, or a demand that nothing can change.
struct LayoutNode {
  const hlo::Instruction* instruction = nullptr;
  Shape shape;                      ///< as it was found
  Order order;                      ///< as chosen so far
  bool fixed = false;
  std::vector<double> minor_cost;   ///< for each dimension: bytes that it costs if this one lies innermost; or empty
  std::vector<int> edges;
  std::string reason;               ///< why it was chosen; empty: it lies as it was found
};

/// Arrays that cost nothing if they lie alike. The order of `sub` is then that of `super` with dimensions left out or
/// renamed.
struct LayoutEdge {
  int super = -1, sub = -1;
  std::vector<std::int64_t> to_super;  ///< dimension of sub to that of super, or -1
  std::vector<std::int64_t> to_sub;    ///< and back
  double bytes = 0;                    ///< that are moved if they lie differently, times how often

  Order sub_order(const Order& super_order) const;
  /// Whether the order of `sub` says that of `super`.
  bool is_whole() const;
  Order super_order(const Order& sub_order) const;
};

/// An operand that has to lie as another node does, or be copied.
struct LayoutUse {
  hlo::Instruction* user = nullptr;   ///< or null: the root of `computation`
  hlo::Computation* computation = nullptr;
  std::int64_t operand = 0;
  std::vector<int> wanted;            ///< a node for each leaf; -1: any
};

struct LayoutGraph {
  std::vector<LayoutNode> nodes;
  std::vector<LayoutEdge> edges;
  std::vector<LayoutUse> uses;
  std::vector<hlo::Computation*> computations;  ///< that run step by step, callees first
  std::unordered_map<const hlo::Instruction*, std::vector<int>> leaves;  ///< nodes, depth first; -1: no array

  bool agrees(const LayoutEdge& e) const {
    return e.sub_order(nodes[static_cast<std::size_t>(e.super)].order) == nodes[static_cast<std::size_t>(e.sub)].order;
  }
};

/// Walks what runs step by step from the entry on. Gives no nodes if a computation is run from two places, for its
/// arrays would lie in two ways. Cost: linear.
LayoutGraph layout_graph(hlo::Module&);

}  // namespace hloom::passes
