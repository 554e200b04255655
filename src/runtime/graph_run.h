// Runs a graph on a pool. Internal to runtime/.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hloom/cancel_token.h"
#include "runtime/graph.h"
#include "runtime/layout.h"
#include "runtime/threads.h"
#include "runtime/waiting.h"

namespace hloom::runtime {

struct RunState;

/// What is left of a node in a run.
struct alignas(64) NodeState {
  std::atomic<std::int32_t> waits_for = 0;    ///< nodes that are not done
  std::atomic<std::int32_t> unfinished = 0;   ///< parts
  std::atomic<std::uint64_t> taken = 0;       ///< a bit for each part
  std::int32_t parts = 1;
};

/// Every worker, the caller among them, takes a part of a node that waits for nothing any more: its own part of the
/// first such node in the order of the program, so that the same data comes to the same core, else a part that another
/// one has not begun. Who finds nothing waits until a node is done. It ends when all nodes are, or one has failed, or
/// the run is cancelled; then nothing more is begun. Allocates nothing.
class GraphRun {
 public:
  GraphRun(const Layout& layout, const Graph& graph, RunState& state, const CancelToken* cancel);
  void run(ThreadPool& pool);

  /// The operation whose check failed, or null.
  const Operation* failed() const;

 private:
  struct Part {
    std::size_t node = 0;
    std::int32_t number = -1;  ///< -1: none
  };
  void work(int worker);
  Part find(int worker);
  bool take(std::size_t node, std::int32_t part);
  bool is_ready(std::size_t node) const;
  void execute(const Part& part, int worker);
  void finish(const Part& part);
  bool has_stopped();

  const Layout& layout_;
  const Graph& graph_;
  RunState& state_;
  const CancelToken* cancel_;
  NodeState* const nodes_;
  std::int64_t spin_ns_ = 0;
  std::int64_t scratch_stride_ = 0;  ///< of workers in nodes that have no room in the arena
  std::atomic<std::size_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<const Operation*> failed_ = nullptr;
  Word events_ = 0;  ///< changes when a node is done
};

}  // namespace hloom::runtime
