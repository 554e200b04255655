// The memory of a run, kept for the next one. Internal to runtime/.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/run_status.h"
#include "hloom/error.h"
#include "runtime/layout.h"
#include "runtime/pages.h"
#include "runtime/threads.h"

namespace hloom::runtime {

/// A parameter's or result's bytes, for finding overlaps.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  std::int32_t port = 0;
};

/// All that a run writes to apart from its results. Made for one program.
struct RunState {
  Pages arena;
  Pages scratch;
  std::int32_t num_threads = 0;          ///< that the scratch is for
  std::vector<void*> pointers;           ///< Layout::table, resolved
  std::vector<std::byte*> ports;
  std::vector<std::int64_t> iterations;  ///< of each loop
  std::vector<Range> ranges;             ///< room to sort in
  std::vector<void*> room;               ///< for the pointers of a collective's folds
  base::RunStatus status;

  Scratch call_scratch(const Layout& layout, std::int64_t stride) const {
    if (stride == 0) return {};
    return {scratch.data() + layout.forked_stride * num_threads, stride};
  }
  Scratch forked_scratch(const Layout& layout) const {
    if (layout.forked_stride == 0) return {};
    return {scratch.data(), layout.forked_stride};
  }
};

/// The states of one program: a run has one to itself, and what it leaves the next run finds mapped and warm, so that
/// from the second run on no page faults and nothing is allocated. Thread-safe.
class ProgramArena {
 public:
  ProgramArena(const Program& program, const Layout& layout) : program_(program), layout_(layout) {}
  ~ProgramArena() { trim(); }

  /// A state with scratch for so many threads. Errors: ResourceExhausted if there is no memory.
  Expected<std::unique_ptr<RunState>> acquire(std::int32_t num_threads);
  /// Keeps the state for the next acquire(), or frees it if as many are kept as there are processors, or
  /// devices of the program.
  void release(std::unique_ptr<RunState>);
  /// Frees the states that are kept.
  void trim();
  std::int64_t num_kept();

 private:
  std::unique_ptr<RunState> take();
  Expected<std::unique_ptr<RunState>> make() const;

  const Program& program_;
  const Layout& layout_;
  std::atomic<RunState*> first_ = nullptr;  ///< one kept state, owned; taken without the lock
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> others_;
};

}  // namespace hloom::runtime
