// Runs programs.
//
//   std::unique_ptr<Executor> executor = TRY(Executor::create(std::move(program)));
//   TRY(executor->execute(parameters, results));
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "hloom/cancel_token.h"
#include "hloom/error.h"
#include "hloom/host_allocator.h"
#include "hloom/host_transfers.h"
#include "library/host_transfer.h"
#include "runtime/collective_step.h"
#include "runtime/program.h"
#include "runtime/threads.h"

namespace hloom::runtime {

/// What an observer learns after a call or a copy, while the run waits for it.
struct StepEvent {
  std::int32_t step = 0;         ///< number of the step, in the order of to_string(program)
  const Step* of = nullptr;
  std::int64_t iteration = 0;    ///< of the innermost loop around it; 0 outside loops
  std::function<std::byte*(const Slice&)> at;  ///< where a slice is in this run
};

struct RunOptions {
  /// Null in normal runs, which then pay nothing for it.
  const std::function<void(const StepEvent&)>* observer = nullptr;
  const CancelToken* cancel = nullptr;  ///< null: the run goes to its end
  std::span<HostTransfers> hosts = {};  ///< by device; empty: what is taken from a host, or given to it, is an error
  std::chrono::milliseconds host_timeout = std::chrono::minutes(5);  ///< the longest wait for a host; 0: for ever
};

using Values = std::span<const std::span<std::byte>>;

/// What a device's routines reach its host by. `device` outlives it.
library::HostPort host_port(const RunOptions&, const Device& device);

/// Runs a program's steps in another way than the executor does, in memory of its own. Any number of threads may call.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  /// One run of one device: as Executor::execute_device(), whose checks of the values it is called behind.
  virtual Expected<> run(const Program&, const Device&, Values parameters, Values results, ThreadPool&,
                         const RunOptions&) const = 0;
};

struct ExecutorOptions {
  HostAllocator* allocator = nullptr;    ///< of arenas and scratch, alive while the executor is; null: the process's
  HostAllocator* host_memory = nullptr;  ///< of the arena in memory space 2, likewise; null: `allocator`
  std::int64_t max_concurrent_runs = 0;  ///< 0: four for each processor
  std::shared_ptr<const StepRunner> runner = nullptr;  ///< who runs the steps instead; null: nobody
};

/// A program that is ready to run. Any number of threads may call execute() at once, on the same or different pools.
class Executor {
 public:
  /// Errors: Internal if the plan is inconsistent, naming the step. Cost: linear.
  static Expected<std::unique_ptr<Executor>> create(Program, const ExecutorOptions& = {});
  ~Executor();  ///< Needs: no run under way.

  /// Runs the program once; returns when all results are written. `parameters[i]` is read, and overwritten only where
  /// it is the memory of the result that is aliased with it. `results[i]` may be exactly the memory of that parameter;
  /// apart from that no result overlaps anything. The floating point mode is the default one during the run. If as many
  /// runs are under way as may be, it waits for one to end, unless it is called within a run.
  /// Errors: InvalidArgument if a count, size, address or overlap is not as the program says, or it is one for several
  ///         devices; ResourceExhausted, with the owners of its peak, if there is no memory for the arena; then nothing
  ///         has run. Cancelled, if the token says so, and what a call reports, with its name in front; then no step that
  ///         needs what it gives has run, and no later one that may fail, and the results are undefined.
  Expected<> execute(std::span<const std::span<std::byte>> parameters, std::span<const std::span<std::byte>> results,
                     ThreadPool& pool = process_pool(), const RunOptions& options = {}) const;

  /// The same as one of several devices, which all have to run at once (devices.h does that).
  /// Errors: those of execute(), which the other devices are told; those of the rendezvous. Results are then undefined.
  Expected<> execute_device(const Device&, std::span<const std::span<std::byte>> parameters,
                            std::span<const std::span<std::byte>> results, ThreadPool& pool,
                            const RunOptions& options = {}) const;

  const Program& program() const;
  /// Bytes of one run's arenas in all memory spaces, and of its workers' scratch on so many threads.
  std::int64_t arena_bytes() const;
  std::int64_t scratch_bytes(int num_threads) const;
  /// Gives back the memory kept for the next runs.
  void trim() const;
  /// Arenas kept for the next runs.
  std::int64_t num_kept() const;

 private:
  struct Impl;
  explicit Executor(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hloom::runtime
