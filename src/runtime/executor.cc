#include "runtime/executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "runtime/arena.h"
#include "runtime/collective_step.h"
#include "runtime/cpus.h"
#include "runtime/float_mode.h"
#include "runtime/fork_join.h"
#include "runtime/graph_run.h"
#include "runtime/layout.h"
#include "runtime/process_allocator.h"
#include "runtime/values.h"

namespace hloom::runtime {
namespace {

constexpr std::int64_t kRunsOfProcessor = 4;

// One run of a program.
class Run {
 public:
  Run(const Program& program, const Layout& layout, RunState& state, ThreadPool& pool, const RunOptions& options,
      const Device& device)
      : program_(program), layout_(layout), state_(state), pool_(pool), options_(options), device_(device) {}

  void bind(Values parameters, Values results) {
    for (std::size_t i = 0; i < parameters.size(); ++i) state_.ports[i] = parameters[i].data();
    for (std::size_t i = 0; i < results.size(); ++i) state_.ports[parameters.size() + i] = results[i].data();
    for (std::size_t i = 0; i < layout_.table.size(); ++i) {
      const TableEntry& entry = layout_.table[i];
      if (entry.base == TableEntry::Base::Port) state_.pointers[i] = port(entry) + entry.offset;
    }
    for (const Alias& alias : program_.aliases) {
      const std::span<std::byte> from = parameters[static_cast<std::size_t>(alias.parameter)];
      const std::span<std::byte> to = results[static_cast<std::size_t>(alias.result)];
      if (from.data() != to.data()) pool_.parallel_copy(to.data(), from.data(), static_cast<std::int64_t>(to.size()));
    }
  }

  Expected<> run() {
    std::optional<ForkJoinScope> scope;
    if (layout_.forks) scope.emplace(pool_, state_.forked_scratch(layout_));
    state_.device = device_.number;
    if (options_.hosts.empty()) return steps();
    const library::HostPort port = host_port(options_, device_);
    state_.host_port = &port;
    const Expected<> done = steps();
    state_.host_port = nullptr;
    return done;
  }

 private:
  using Kind = Operation::Kind;

  Expected<> steps() {
    const Expected<> done = options_.observer == nullptr ? walk<false>() : walk<true>();
    // Whatever ended the run: the memory is another's next.
    for (std::int32_t number = 0; number < layout_.num_starts; ++number) finish(state_.started[number]);
    return done;
  }

  std::byte* port(const TableEntry& entry) const { return state_.ports[static_cast<std::size_t>(entry.number)]; }

  void* const* pointers(const Operation& operation) const { return state_.pointers.data() + operation.pointer; }

  std::byte first_byte(const Operation& operation) const {
    return *static_cast<const std::byte*>(*pointers(operation));
  }

  std::int64_t& iteration(const Operation& operation) const {
    return state_.iterations[static_cast<std::size_t>(operation.loop)];
  }

  // The branch, from 0. One that is not there is the last.
  std::int64_t branch(const Operation& operation) const {
    if (operation.kind == Kind::SwitchPred) return first_byte(operation) == std::byte{0} ? 1 : 0;
    std::int32_t index;
    std::memcpy(&index, *pointers(operation), sizeof(index));
    return index < 0 || index >= operation.count ? operation.count - 1 : index;
  }

  void work(const Operation& operation) {
    const Scratch scratch = state_.call_scratch(layout_, operation);
    if (operation.kind == Kind::Parallel)
      return pool_.parallel_for_blocks(operation.function, pointers(operation), operation.count,
                                       std::min(operation.workers, pool_.num_threads()), scratch, operation.cuts);
    operation.function(pointers(operation), 0, operation.count, scratch.base);
  }

  static void do_started(void* context) {
    const StartedWork& work = *static_cast<const StartedWork*>(context);
    const Operation& operation = *work.operation;
    if (operation.function != nullptr) return operation.function(work.pointers, 0, operation.count, nullptr);
    std::memcpy(work.pointers[1], work.pointers[0], static_cast<std::size_t>(operation.count));
  }

  StartedWork& started(const Operation& operation) const { return state_.started[operation.target]; }

  void start(const Operation& operation) {
    StartedWork& work = started(operation);
    work.operation = &operation;
    work.pointers = pointers(operation);
    work.errand.function = do_started;
    work.errand.context = &work;
    work.under_way = true;
    pool_.send(work.errand);
  }

  void finish(StartedWork& work) {
    if (std::exchange(work.under_way, false)) pool_.finish(work.errand);
  }

  Error failure(const Operation& operation) {
    const Step& step = *layout_.steps[static_cast<std::size_t>(operation.step)];
    return base::take_failure(state_.status, std::get<Call>(step.of).name);
  }

  void write_number(const Operation& operation, std::int64_t value) const {
    const auto number = static_cast<std::uint32_t>(value);
    std::memcpy(*pointers(operation), &number, sizeof(number));
  }

  Expected<> meet(const Operation& operation) {
    using Part = Collective::Part;
    const Part part = operation.kind == Kind::StartCollective  ? Part::Start
                      : operation.kind == Kind::DoneCollective ? Part::Done
                                                               : Part::Whole;
    return run_collective(device_, program_.collectives[operation.target], part, pointers(operation), pool_,
                          state_.room);
  }

  Expected<> run_graph(const Graph& graph) {
    GraphRun run(layout_, graph, state_, options_.cancel);
    run.run(pool_);
    if (const Operation* failed = run.failed(); failed != nullptr) return failure(*failed);
    return check_cancelled();
  }

  Expected<> check_cancelled() const {
    if (options_.cancel == nullptr || !options_.cancel->is_cancelled()) return {};
    return fail(Code::Cancelled, program_.name, ": the run was cancelled");
  }

  // A device whose loop would never end leaves it when the run has failed elsewhere.
  Expected<> check_others() const {
    if (device_.others != nullptr && device_.others->failed()) return device_.others->error();
    return {};
  }

  template <bool kObserved>
  Expected<> walk() {
    const auto end = static_cast<std::uint32_t>(layout_.operations.size());
    for (std::uint32_t at = 0; at < end;) {
      const Operation& operation = layout_.operations[at++];
      if (options_.cancel != nullptr) TRY(check_cancelled());
      switch (operation.kind) {
        case Kind::Inline:
        case Kind::Forking:
        case Kind::Parallel:
          work(operation);
          if constexpr (kObserved) observe(operation);
          break;
        case Kind::Check:
          if (base::has_failed(state_.status)) return failure(operation);
          break;
        case Kind::Copy:
          pool_.parallel_copy(static_cast<std::byte*>(pointers(operation)[1]),
                              static_cast<const std::byte*>(pointers(operation)[0]), operation.count);
          if constexpr (kObserved) observe(operation);
          break;
        case Kind::EnterLoop: iteration(operation) = 0; break;
        case Kind::LeaveUnless:
          if (first_byte(operation) == std::byte{0}) at = operation.target;
          break;
        case Kind::Repeat:
          TRY(check_others());
          ++iteration(operation);
          at = operation.target;
          break;
        case Kind::RepeatUntil:
          TRY(check_others());
          if (++iteration(operation) < operation.count) at = operation.target;
          break;
        case Kind::SwitchPred:
        case Kind::SwitchIndex:
          at = layout_.targets[operation.target + static_cast<std::size_t>(branch(operation))];
          break;
        case Kind::Goto: at = operation.target; break;
        case Kind::Graph:
          // One after the other, an observer sees them in their order, and one thread has them in its cache.
          if (kObserved || pool_.num_threads() == 1) break;
          TRY(run_graph(layout_.graphs[static_cast<std::size_t>(operation.count)]));
          at = operation.target;
          break;
        case Kind::ReplicaNumber:
          write_number(operation, device_.number / program_.partitions);
          if constexpr (kObserved) observe(operation);
          break;
        case Kind::PartitionNumber:
          write_number(operation, device_.number % program_.partitions);
          if constexpr (kObserved) observe(operation);
          break;
        case Kind::Start:
          start(operation);
          if constexpr (kObserved) {
            finish(started(operation));  // an observer sees what it gives
            observe(operation);
          }
          break;
        case Kind::Finish: finish(started(operation)); break;
        case Kind::Collective:
        case Kind::StartCollective:
        case Kind::DoneCollective:
          TRY(meet(operation));
          if constexpr (kObserved) observe(operation);
          break;
      }
    }
    return {};
  }

  std::byte* place(const Slice& slice) const {
    const TableEntry& entry = layout_.allocations[static_cast<std::size_t>(slice.allocation)];
    switch (entry.base) {
      case TableEntry::Base::Arena: return state_.arena.data() + entry.offset + slice.offset;
      case TableEntry::Base::Host: return state_.host.data() + entry.offset + slice.offset;
      case TableEntry::Base::Port: return port(entry) + slice.offset;
      case TableEntry::Base::Status: return reinterpret_cast<std::byte*>(&state_.status) + slice.offset;
      case TableEntry::Base::Device: return reinterpret_cast<std::byte*>(&state_.device) + slice.offset;
      case TableEntry::Base::HostPort: return reinterpret_cast<std::byte*>(&state_.host_port) + slice.offset;
      case TableEntry::Base::Constant: break;
    }
    return const_cast<std::byte*>(program_.constants[static_cast<std::size_t>(entry.number)].data()) + slice.offset;
  }

  void observe(const Operation& operation) const {
    StepEvent event;
    event.step = operation.step;
    event.of = layout_.steps[static_cast<std::size_t>(operation.step)];
    event.iteration = operation.loop < 0 ? 0 : iteration(operation);
    event.at = [this](const Slice& slice) { return place(slice); };
    (*options_.observer)(event);
  }

  const Program& program_;
  const Layout& layout_;
  RunState& state_;
  ThreadPool& pool_;
  const RunOptions& options_;
  const Device& device_;
};

}  // namespace

library::HostPort host_port(const RunOptions& options, const Device& device) {
  const auto number = static_cast<std::size_t>(device.number);
  library::HostPort port;
  if (number < options.hosts.size()) port.host = &options.hosts[number];
  port.wait.timeout = options.host_timeout;
  port.wait.cancel = options.cancel;
  if (device.others != nullptr) port.wait.stopped = [&device] { return device.others->failed(); };
  return port;
}

struct Executor::Impl {
  Impl(Program p, const ExecutorOptions& options)
      : program(std::move(p)),
        runner(options.runner),
        arena(program, layout, allocator_of(options),
              options.host_memory == nullptr ? allocator_of(options) : *options.host_memory,
              options.max_concurrent_runs > 0 ? options.max_concurrent_runs : kRunsOfProcessor * available_cpus()) {}
  static HostAllocator& allocator_of(const ExecutorOptions& options) {
    return options.allocator == nullptr ? process_allocator() : *options.allocator;
  }
  const Program program;
  const std::shared_ptr<const StepRunner> runner;
  Layout layout;
  ProgramArena arena;

  Expected<> run(const Device& device, RunState& state, Values parameters, Values results, ThreadPool& pool,
                 const RunOptions& options) const {
    TRY(check_values(program, parameters, results, state.ranges));
    Run run(program, layout, state, pool, options, device);
    run.bind(parameters, results);
    return run.run();
  }

  Expected<> run_otherwise(const Device& device, Values parameters, Values results, ThreadPool& pool,
                           const RunOptions& options) const {
    std::vector<Range> ranges;
    TRY(check_values(program, parameters, results, ranges));
    return runner->run(program, device, parameters, results, pool, options);
  }
};

Expected<std::unique_ptr<Executor>> Executor::create(Program program, const ExecutorOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(program), options);
  impl->layout = TRY(lay_out(impl->program));
  return std::unique_ptr<Executor>(new Executor(std::move(impl)));
}

Expected<> Executor::execute(Values parameters, Values results, ThreadPool& pool, const RunOptions& options) const {
  if (const std::int64_t devices = num_devices(impl_->program); devices != 1)
    return fail(Code::InvalidArgument, impl_->program.name, ": runs on ", devices, " devices at once, not on one");
  return execute_device({}, parameters, results, pool, options);
}

namespace {

// How the device's run has ended.
void tell_others(const Device& device, const Expected<>& done) {
  if (device.others == nullptr) return;
  if (!done) device.others->fail(done.error());
  device.others->end(device.number);
}

}  // namespace

Expected<> Executor::execute_device(const Device& device, Values parameters, Values results, ThreadPool& pool,
                                    const RunOptions& options) const {
  const DefaultFloatMode mode;
  // Devices of one run wait for each other: none may wait for another run.
  const bool may_wait = device.others == nullptr && !ThreadPool::is_within_work();
  const ThreadPool::Within within;
  if (impl_->runner != nullptr) {
    const Expected<> done = impl_->run_otherwise(device, parameters, results, pool, options);
    tell_others(device, done);
    return done;
  }
  Expected<std::unique_ptr<RunState>> state = impl_->arena.acquire(pool, may_wait);
  Expected<> done = state ? impl_->run(device, **state, parameters, results, pool, options) : state.error();
  tell_others(device, done);  // from here on nobody reads the arena
  if (state) impl_->arena.release(*std::move(state));
  return done;
}

const Program& Executor::program() const { return impl_->program; }
std::int64_t Executor::arena_bytes() const { return impl_->layout.arena_bytes + impl_->layout.host_bytes; }
std::int64_t Executor::scratch_bytes(int num_threads) const { return impl_->layout.scratch_bytes(num_threads); }
void Executor::trim() const { impl_->arena.trim(); }
std::int64_t Executor::num_kept() const { return impl_->arena.num_kept(); }

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::~Executor() = default;

}  // namespace hloom::runtime
