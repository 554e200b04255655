// Chooses the layouts of a graph.
#pragma once

#include "passes/layout_graph.h"

namespace hloom::passes {

/// Bytes that are moved because neighbours lie differently, and that awkward layouts cost; without `weighed` the plain
/// ones of the edges alone.
double layout_cost(const LayoutGraph&);

/// Changes orders and reasons of nodes that are not fixed until no region of arrays gains by following one of its
/// neighbours. Each trial gives an array the order of its neighbour, follows all edges as far as they lead, and keeps
/// of that the part that costs least: a minimum cut. Deterministic. Cost: trials are few and bounded in size, so near
/// linear in the graph.
void choose_layouts(LayoutGraph&);

}  // namespace hloom::passes
