// Where the devices of one run meet.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "hlo/instruction.h"
#include "hloom/error.h"
#include "interp/value.h"

namespace hloom::interp {

/// Joins the threads of all devices. They take turns: exactly one runs, until it waits for others here or ends. So a
/// run always goes the same way, and devices may share values without locks.
class Fabric {
 public:
  explicit Fabric(std::int64_t num_devices) : devices_(static_cast<std::size_t>(num_devices)) {}

  /// A device begins: waits for its turn.
  void enter(std::int64_t device);
  /// A device has ended; another may run. Needs: the device's values are gone or its own alone.
  /// After an error the others are not let wait for it.
  void leave(std::int64_t device, bool failed);

  /// Lets the others that are ready run, then goes on.
  void yield(std::int64_t device);
  /// Whether a device stopped the run.
  bool failed();

  /// Gives `mine` to the members of `group` (device ids, this one among them) and takes theirs, in the group's order.
  /// Errors: InvalidArgument if all devices wait and no group is complete; Aborted where another device stopped the
  /// run.
  Expected<std::vector<Value>> exchange(std::int64_t device, const hlo::Instruction&,
                                        const std::vector<std::int64_t>& group, Value mine);

  /// Which values meet: a mailbox, the device that sends and the one that receives.
  using Mail = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  /// Leaves a value for the receiver.
  void post(const Mail&, Value);
  /// Takes the first value that is there, or waits for one. Errors: as of exchange().
  Expected<Value> take(const Mail&, const hlo::Instruction&);

 private:
  enum class State : std::uint8_t { Ready, Waiting, Ended };
  struct Device {
    State state = State::Ready;
    const hlo::Instruction* at = nullptr;  // while Waiting
    std::vector<std::int64_t> group;  // empty: it waits for `mail`
    Mail mail;
    Value offer;
    std::vector<Value> taken;
  };
  Device& of(std::int64_t device) { return devices_[static_cast<std::size_t>(device)]; }
  void pass_turn(std::int64_t device);
  bool is_complete(const hlo::Instruction&, const std::vector<std::int64_t>& group);
  void fail_all();

  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::vector<Device> devices_;
  std::map<Mail, std::deque<Value>> mail_;
  std::int64_t turn_ = 0;
  std::optional<Error> failure_;
};

}  // namespace hloom::interp
