// How to end a run that is under way.
//
//   hloom::CancelToken stop;
//   std::thread runs([&] { result = program->run(args, {.cancel = &stop}); });
//   stop.cancel();  // the run returns Cancelled
#pragma once

#include <atomic>

namespace hloom {

/// Tells runs to stop, which they do between two steps and between two iterations of a loop; what is one compiled step
/// (a loop of small instructions is) goes on to its end. Any number of runs may have the same token.
class CancelToken {
 public:
  /// From any thread, and from a signal handler.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  /// For the next runs. Needs: no run with this token under way.
  void reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace hloom
