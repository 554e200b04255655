// Which steps may go on at the same time for all that they compute, so that sharing memory need not order them.
#pragma once

#include <vector>

#include "buffers/assignment.h"
#include "buffers/webs.h"

namespace hloom::buffers {

/// Pairs of large steps of one computation of which neither needs what the other makes, with no loop, branch or call
/// between them, and at most `reach` steps apart in the order: the runtime runs such steps at once where memory does
/// not keep them apart (runtime/graph.h).
class Concurrency {
 public:
  /// A step that moves fewer bytes is not worth a thread of its own.
  static constexpr std::int64_t kLargeBytes = 128 * 1024;
  static constexpr int kMostReach = 128;  ///< steps of one graph of the runtime

  /// Cost: the steps times `reach`. Needs: reach <= kMostReach.
  Concurrency(const Flow&, int reach);

  using Pair = std::pair<const hlo::Instruction*, const hlo::Instruction*>;
  const std::vector<Pair>& pairs() const { return pairs_; }

  /// Of memory that a step, or whatever makes or reads one of the nodes, uses.
  Neighbours neighbours(const hlo::Instruction& step) const;
  Neighbours neighbours(const std::vector<NodeId>& nodes) const;
  /// Whether `writer` may go on beside what makes or reads one of the nodes.
  bool is_beside(const hlo::Instruction& writer, const std::vector<NodeId>& nodes) const;

 private:
  struct Run;
  void look_at(const hlo::Computation&, int reach);
  void add(const hlo::Instruction&, Run&, int reach);
  const std::vector<Point>& beside(const hlo::Instruction& step) const { return beside_[static_cast<std::size_t>(step.id())]; }
  /// Calls f with each step that makes or reads a node.
  template <typename F>
  void for_steps(const std::vector<NodeId>& nodes, const F& f) const;

  const Flow& flow_;
  std::vector<std::vector<Point>> beside_;  ///< when those work that may go on beside it; by instruction id
  std::vector<Pair> pairs_;
};

/// How many pairs of steps there are that may go on at the same time, and how many of them do not since one writes
/// memory that the other uses.
struct PairCounts {
  std::size_t all = 0, kept_apart = 0;
};

/// Needs: the assignment's module unchanged.
PairCounts count_pairs(const Assignment&);

}  // namespace hloom::buffers
