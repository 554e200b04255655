#include "runtime/devices.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "runtime/cpus.h"
#include "runtime/values.h"

namespace hloom::runtime {

// What one run on all devices has to itself.
struct Devices::Team {
  Team(std::int64_t num_devices, std::int64_t num_operations)
      : meeting(num_devices, num_operations), threads(static_cast<int>(num_devices)) {}

  collectives::Rendezvous meeting;
  ThreadPool threads;                               ///< one for each device
  std::vector<std::unique_ptr<ThreadPool>> helpers; ///< of each device
  std::vector<Range> ranges;                        ///< room to sort in
};

Devices::Devices(const Executor& executor, int num_threads) : executor_(executor), num_threads_(num_threads) {}
Devices::~Devices() = default;

// The first devices have one more where they cannot be shared out evenly.
int Devices::threads_of(std::int64_t device) const {
  const auto devices = static_cast<int>(num_devices(executor_.program()));
  return std::max(1, num_threads_ / devices + (device < num_threads_ % devices ? 1 : 0));
}

std::int64_t Devices::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (std::int64_t k = 0; k < num_devices(executor_.program()); ++k) bytes += executor_.scratch_bytes(threads_of(k));
  return bytes;
}

std::unique_ptr<Devices::Team> Devices::take() const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!kept_.empty()) {
      std::unique_ptr<Team> team = std::move(kept_.back());
      kept_.pop_back();
      return team;
    }
  }
  const Program& program = executor_.program();
  auto team = std::make_unique<Team>(num_devices(program), static_cast<std::int64_t>(program.collectives.size()));
  for (std::int64_t k = 0; k < num_devices(program); ++k)
    team->helpers.push_back(std::make_unique<ThreadPool>(threads_of(k)));
  return team;
}

namespace {

std::int32_t device_of(const Range& range) { return range.port / 2; }

// The ranges that have reached farthest so far: one, and one of another device.
struct Reach {
  Range far, other;

  void add(const Range& range) {
    if (range.end > far.end) {
      if (device_of(range) != device_of(far)) other = far;
      far = range;
    } else if (device_of(range) != device_of(far) && range.end > other.end) {
      other = range;
    }
  }
  const Range& besides(std::int32_t device) const { return device_of(far) == device ? other : far; }
};

// What one device writes no other one may read or write.
Expected<> check_between(const Program& program, std::span<const DeviceValues> values, std::vector<Range>& ranges) {
  const auto add = [&](std::span<std::byte> value, std::size_t device, bool is_result) {
    const auto begin = reinterpret_cast<std::uintptr_t>(value.data());
    if (!value.empty())
      ranges.push_back({begin, begin + value.size(), static_cast<std::int32_t>(2 * device + is_result)});
  };
  ranges.clear();
  for (std::size_t k = 0; k < values.size(); ++k) {
    for (const std::span<std::byte> value : values[k].parameters) add(value, k, false);
    for (const std::span<std::byte> value : values[k].results) add(value, k, true);
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  Reach all, results;
  for (const Range& range : ranges) {
    const bool is_result = range.port % 2 != 0;
    const Range& before = (is_result ? all : results).besides(device_of(range));
    if (range.begin < before.end)
      return fail(Code::InvalidArgument, program.name, ": memory of devices ",
                  std::min(device_of(before), device_of(range)), " and ", std::max(device_of(before), device_of(range)),
                  " overlaps, and one of them writes there");
    all.add(range);
    if (is_result) results.add(range);
  }
  return {};
}

}  // namespace

// The observer is told of device 0 alone.
static RunOptions options_of(const RunOptions& options, int device) {
  RunOptions own = options;
  if (device != 0) own.observer = nullptr;
  return own;
}

Expected<> Devices::execute(std::span<const DeviceValues> values, const RunOptions& options,
                            std::chrono::milliseconds timeout) const {
  const Program& program = executor_.program();
  if (static_cast<std::int64_t>(values.size()) != num_devices(program))
    return fail(Code::InvalidArgument, program.name, ": runs on ", num_devices(program), " devices, found values for ",
                values.size());
  std::unique_ptr<Team> team = take();
  const Expected<> done = execute(*team, values, options, timeout);
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back(std::move(team));
  return done;
}

Expected<> Devices::execute(Team& team, std::span<const DeviceValues> values, const RunOptions& options,
                            std::chrono::milliseconds timeout) const {
  const Program& program = executor_.program();
  for (std::size_t k = 0; k < values.size(); ++k)
    if (const auto checked = check_values(program, values[k].parameters, values[k].results, team.ranges); !checked)
      return fail(checked.error().code(), "device ", k, ": ", checked.error().message());
  TRY(check_between(program, values, team.ranges));
  if (!team.threads.start_all())
    return fail(Code::ResourceExhausted, program.name, ": the system has no threads for ", values.size(), " devices");

  team.meeting.begin(timeout, num_threads_ <= available_cpus() && static_cast<int>(values.size()) <= num_threads_);
  struct Work {
    const Executor& executor;
    Team& team;
    std::span<const DeviceValues> values;
    const RunOptions& options;
  } work{executor_, team, values, options};
  const ThreadPool::Body body = [](void* context, int device, int) {
    const Work& all = *static_cast<const Work*>(context);
    const auto k = static_cast<std::size_t>(device);
    // Every device learns of an error, so that the meeting knows it.
    static_cast<void>(all.executor.execute_device({device, &all.team.meeting}, all.values[k].parameters,
                                                  all.values[k].results, *all.team.helpers[k],
                                                  options_of(all.options, device)));
  };
  team.threads.run(static_cast<int>(values.size()), body, &work);
  if (team.meeting.failed()) return team.meeting.error();
  return {};
}

}  // namespace hloom::runtime
