// Which operations of a run of steps may go on at the same time. Internal to runtime/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hloom::runtime {

/// Bytes that an operation reads or writes.
struct Access {
  std::int64_t memory = 0;  ///< the same for what lies in one memory
  std::int64_t begin = 0, end = 0;
  bool written = false;
};

/// An operation, for finding what it waits for.
struct Task {
  std::uint32_t operation = 0;     ///< number in the layout
  std::int32_t parts = 1;          ///< the most that may go on at once
  std::int64_t cost = 0;
  bool ordered = false;            ///< after all earlier ordered ones
  bool checked = false;            ///< may fail
  std::vector<Access> accesses;
};

struct GraphNode {
  std::uint32_t operation = 0;
  std::int32_t parts = 1;
  std::int32_t waits_for = 0;                  ///< nodes
  std::uint32_t first_next = 0, num_next = 0;  ///< in Graph::next: those that wait for it
  bool checked = false;
};

/// Nodes in the order of the program; edges lead onwards, and none is left out or there because of others.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<std::uint32_t> next;
};

inline constexpr std::size_t kMaxGraphNodes = 128;
/// A cost from which an operation is worth a thread.
inline constexpr std::int64_t kLargeCost = 128 * 1024;

/// The graph of some tasks: one waits for an earlier one if one of the two writes what the other reads or writes, or
/// both are ordered. Nothing, if no two large ones may go on at once: then they are best run one after the other.
/// Needs: at most kMaxGraphNodes. Cost: quadratic.
std::optional<Graph> make_graph(std::span<const Task>);

}  // namespace hloom::runtime
