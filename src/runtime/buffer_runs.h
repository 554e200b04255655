// Runs that take Buffers and give Buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hloom/buffer.h"
#include "hloom/error.h"
#include "runtime/executor.h"
#include "runtime/forks.h"

namespace hloom::runtime {

/// What a Results is, and the lists that a run needs, kept for later runs.
struct ResultState {
  std::vector<Buffer> buffers;
  std::vector<Donation> donations;
  std::vector<Buffer> copies;  ///< of arguments that the run writes over though they were not donated
  std::vector<std::span<std::byte>> inputs, outputs;
};

/// Thread-safe.
class ResultPool final : public SurvivesFork {
 public:
  ResultPool() { start_surviving(); }
  ~ResultPool() { stop_surviving(); }
  std::unique_ptr<ResultState> take();
  /// Gives back what the state holds.
  void keep(std::unique_ptr<ResultState>);

 private:
  void before_fork() override { mutex_.lock(); }
  void after_fork(bool) override { mutex_.unlock(); }

  std::mutex mutex_;
  std::vector<std::unique_ptr<ResultState>> kept_;
};

/// Runs of one program. Any number of threads may call run() at once.
class BufferRuns {
 public:
  /// Both must outlive it; results may outlive it, and even the allocator.
  BufferRuns(const Executor& executor, HostAllocator& allocator);

  /// Runs the program with results in memory of the allocator, or in that of donated arguments: where the program
  /// aliases a result with the parameter, nobody else holds the memory, and it may be written. After a run without an
  /// error, arguments that were donated are empty; after an error all are as before, but the content of those that
  /// were donated is undefined unless nothing has run.
  /// Errors: those of Executor::execute(); ResourceExhausted if there is no memory for the results.
  Expected<Results> run(std::span<Buffer> args, ThreadPool& pool, const RunOptions& options) const;

 private:
  Expected<> fill(std::span<Buffer> args, ThreadPool& pool, ResultState& state) const;
  Expected<> add_input(const Buffer& arg, const Port& port, ThreadPool& pool, ResultState& state) const;
  static std::string_view obstacle(const Buffer& arg, std::int64_t result);
  void take_donated(std::span<Buffer> args, ResultState& state) const;

  const Executor& executor_;
  HostAllocator& allocator_;
  std::vector<std::int64_t> parameter_of_result_, result_of_parameter_;  ///< -1: none
  std::shared_ptr<ResultPool> pool_;
};

}  // namespace hloom::runtime
