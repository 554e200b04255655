// Runs a program on all its devices at once.
//
//   Devices devices(*executor, /*num_threads=*/8);
//   TRY(devices.execute(arrays));  // arrays[k]: parameters and results of device k
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hloom/error.h"
#include "runtime/executor.h"

namespace hloom::runtime {

/// What execute() takes for one device: as Executor::execute().
struct DeviceValues {
  std::span<const std::span<std::byte>> parameters, results;
};

/// Threads for the devices of one program: each device has one of its own, with an arena of its own, and an equal share
/// of `num_threads` to help it in kernels; with fewer threads than devices each device is alone on its thread. Device 0
/// runs on the caller. Any number of threads may call execute() at once: each call has devices of its own.
class Devices {
 public:
  /// `executor` must outlive it. Starts no thread yet.
  Devices(const Executor& executor, int num_threads);
  ~Devices();  ///< Needs: no run under way.

  /// Runs the program once on all devices and returns when all have ended. Values do not depend on the number of
  /// threads. Devices may share the memory of what they only read. Options' observer is told of device 0 alone.
  /// Errors: InvalidArgument if counts, sizes or overlaps are not as the program says, between devices too, and
  ///         ResourceExhausted if there are no threads for all: then nothing has run. Else the first error of a device,
  ///         which all of them stop with: DeadlineExceeded if one waited longer than `timeout` for others in a
  ///         collective, InvalidArgument if they wait for each other in vain.
  Expected<> execute(std::span<const DeviceValues>, const RunOptions& options = {},
                     std::chrono::milliseconds timeout = collectives::kDefaultTimeout) const;

  int num_threads() const { return num_threads_; }
  /// Of all devices' workers.
  std::int64_t scratch_bytes() const;

 private:
  struct Team;
  std::unique_ptr<Team> take() const;
  Expected<> execute(Team&, std::span<const DeviceValues>, const RunOptions&, std::chrono::milliseconds timeout) const;
  int threads_of(std::int64_t device) const;

  const Executor& executor_;
  const int num_threads_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Team>> kept_;
};

}  // namespace hloom::runtime
