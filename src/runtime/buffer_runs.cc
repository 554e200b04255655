#include "runtime/buffer_runs.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/try.h"

namespace hloom {

Results::~Results() {
  if (state_ != nullptr) pool_->keep(std::unique_ptr<runtime::ResultState>(state_));
}

std::span<Buffer> Results::buffers() const {
  if (state_ == nullptr) return {};
  return state_->buffers;
}

std::span<const Donation> Results::donations() const {
  if (state_ == nullptr) return {};
  return state_->donations;
}

namespace runtime {

std::unique_ptr<ResultState> ResultPool::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!kept_.empty()) {
      std::unique_ptr<ResultState> state = std::move(kept_.back());
      kept_.pop_back();
      return state;
    }
  }
  return std::make_unique<ResultState>();
}

void ResultPool::keep(std::unique_ptr<ResultState> state) {
  state->buffers.clear();
  state->donations.clear();
  state->copies.clear();
  state->inputs.clear();
  state->outputs.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back(std::move(state));
}

BufferRuns::BufferRuns(const Executor& executor, HostAllocator& allocator)
    : executor_(executor), allocator_(allocator), pool_(std::make_shared<ResultPool>()) {
  const Program& program = executor.program();
  parameter_of_result_.assign(program.results.size(), -1);
  result_of_parameter_.assign(program.parameters.size(), -1);
  for (const Alias& alias : program.aliases) {
    parameter_of_result_[static_cast<std::size_t>(alias.result)] = alias.parameter;
    result_of_parameter_[static_cast<std::size_t>(alias.parameter)] = alias.result;
  }
}

// Why a donated argument cannot be the memory of the result.
std::string_view BufferRuns::obstacle(const Buffer& arg, std::int64_t result) {
  if (result < 0) return "the program aliases no result with it";
  if (arg.is_immutable()) return "its memory is immutable";
  if (arg.is_shared()) return "another handle holds its memory";
  return {};
}

// What the program writes over without giving it as a result is copied, unless the caller has no use for it.
Expected<> BufferRuns::add_input(const Buffer& arg, const Port& port, ThreadPool& pool, ResultState& state) const {
  const Buffer* input = &arg;
  const bool given_up = arg.is_donated() && !arg.is_immutable() && !arg.is_shared();
  if (port.overwritten && !given_up && arg.size_bytes() == port.size_bytes) {
    state.copies.push_back(TRY(Buffer::allocate(allocator_, port.size_bytes)));
    input = &state.copies.back();
    pool.parallel_copy(input->data_, arg.data_, port.size_bytes);
  }
  state.inputs.push_back({input->data_, static_cast<std::size_t>(input->size_bytes_)});
  return {};
}

Expected<> BufferRuns::fill(std::span<Buffer> args, ThreadPool& pool, ResultState& state) const {
  const Program& program = executor_.program();
  if (args.size() != program.parameters.size())
    return fail(Code::InvalidArgument, program.name, ": expects ", program.parameters.size(), " arguments, found ",
                args.size());
  state.copies.reserve(args.size());  // inputs are taken from its elements
  for (std::size_t i = 0; i < args.size(); ++i) TRY(add_input(args[i], program.parameters[i], pool, state));
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    const std::int64_t p = parameter_of_result_[r];
    const Buffer* donor = p < 0 ? nullptr : &args[static_cast<std::size_t>(p)];
    if (donor != nullptr && donor->is_donated() && obstacle(*donor, static_cast<std::int64_t>(r)).empty()) {
      state.buffers.emplace_back();
      state.outputs.push_back(state.inputs[static_cast<std::size_t>(p)]);
    } else {
      state.buffers.push_back(TRY(Buffer::allocate(allocator_, program.results[r].size_bytes)));
      state.outputs.push_back(state.buffers.back().mutable_bytes());
    }
  }
  return {};
}

void BufferRuns::take_donated(std::span<Buffer> args, ResultState& state) const {
  for (std::size_t p = 0; p < args.size(); ++p) {
    if (!args[p].is_donated()) continue;
    Buffer donated = std::move(args[p]);
    Donation donation{static_cast<std::int64_t>(p), result_of_parameter_[p], {}};
    // Two handles of one memory were both in its way when the results were placed, whichever is taken first.
    const bool used = donation.result >= 0 && state.buffers[static_cast<std::size_t>(donation.result)].data() == nullptr;
    if (used) {
      donated.donated_ = false;
      state.buffers[static_cast<std::size_t>(donation.result)] = std::move(donated);
    } else {
      donation.reason = obstacle(donated, donation.result);
      if (donation.reason.empty()) donation.reason = "another argument was a handle of its memory";
      donation.result = -1;
    }
    state.donations.push_back(donation);
  }
}

Expected<Results> BufferRuns::run(std::span<Buffer> args, ThreadPool& pool, const RunOptions& options) const {
  Results results;
  results.pool_ = pool_;
  results.state_ = pool_->take().release();
  ResultState& state = *results.state_;
  TRY(fill(args, pool, state));
  TRY(executor_.execute(state.inputs, state.outputs, pool, options));
  take_donated(args, state);
  return results;
}

}  // namespace runtime
}  // namespace hloom
