// Where the devices of one run meet in collectives.
//
//   TRY(meeting.arrive(device, operation, buffers));       // the operands are ready; returns at once
//   auto members = TRY(meeting.wait(device, operation));   // everybody's buffers: work on them
//   TRY(meeting.leave(device, operation));                 // all have worked; buffers are one's own again
//
// A send and a take are no meeting: who sends goes on, who takes waits for him alone.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/mailbox.h"
#include "collectives/operation.h"
#include "hloom/error.h"

namespace hloom::collectives {

/// How long a device waits for others unless told otherwise.
inline constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(5);

/// The meetings of one run after the other. Each device is one thread, which calls the functions that take a device;
/// operations are told apart by their numbers. A device may have arrived at several operations before it waits for one.
///
/// A failure is everybody's: whoever waits or comes later gets the same error, until begin(). That all wait for each
/// other, or for devices that have ended, is found at once; a device that goes on and never comes, by the deadline.
class Rendezvous {
 public:
  /// Buffers of one member: operands, then results.
  using Buffers = void* const*;

  Rendezvous(std::int64_t num_devices, std::int64_t num_operations);

  /// Makes ready for a run of all devices. `timeout`: the longest wait for others, 0 for any. `spin`: who waits keeps
  /// its processor for some microseconds, which pays where there is one for each device. Needs: all devices have ended.
  void begin(std::chrono::milliseconds timeout = kDefaultTimeout, bool spin = false);

  /// The device's operands are ready, and its results may be written, until it leaves. Needs: it is in a group, and has
  /// left the operation if it was there before. `buffers` and what they name stay until then.
  /// Errors: the run's.
  Expected<> arrive(std::int64_t device, const Operation&, Buffers buffers);

  /// Waits until the group is complete; gives the buffers of its members in the order of ranks, valid until the
  /// device's next wait. Errors: the run's; InvalidArgument, naming both, if a member came with another idea of the
  /// collective or waits elsewhere in vain; DeadlineExceeded, naming who is missing and where it was last.
  Expected<std::span<const Buffers>> wait(std::int64_t device, const Operation&);

  /// Says that the device's work is done and waits until the group's is. Errors: the run's.
  Expected<> leave(std::int64_t device, const Operation&);

  /// Of a Send: leaves copies of the arrays for the device's target, if it has one. Errors: the run's.
  Expected<> send(std::int64_t device, const Operation&, Buffers arrays);
  /// Of a Take: waits for what the device's source sends it and copies it into the arrays; zeros without a source.
  /// Errors: the run's; InvalidArgument if other arrays were sent or devices wait in vain; DeadlineExceeded, naming the source and
  /// where it was last.
  Expected<> take(std::int64_t device, const Operation&, Buffers arrays);

  /// Ends the run for all with an error, unless it has one.
  void fail(Error);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Needs: failed().
  Error error() const;

  /// The device comes to no meeting any more in this run. Returns when nobody reads its memory.
  void end(std::int64_t device);

  std::int64_t num_devices() const { return static_cast<std::int64_t>(devices_.size()); }

 private:
  // What a device says of an operation; it alone writes. In round k the stage goes through 4k + 1, 2, 3.
  struct alignas(64) Line {
    std::atomic<std::uint64_t> stage = 0;
    std::uint64_t round = 0;
    const Operation* operation = nullptr;
    Buffers buffers = nullptr;
  };
  struct alignas(64) Device {
    // Guarded by mutex_.
    std::condition_variable wake;
    const Operation* waits_at = nullptr;
    std::int64_t waits_for = -1;
    std::uint64_t waits_for_stage = 0;
    const Mailbox* waits_for_mail = nullptr;
    bool ended = true;
    std::atomic<const Operation*> last = nullptr;  ///< where it came last
    std::vector<Buffers> members;  ///< its own: what wait() gave
  };

  Line& line(std::int64_t device, const Operation& operation) {
    return lines_[static_cast<std::size_t>(device * num_operations_ + operation.number)];
  }
  Device& of(std::int64_t device) { return devices_[static_cast<std::size_t>(device)]; }
  bool has_come(std::int64_t device, const Operation& operation, std::uint64_t stage) {
    return line(device, operation).stage.load(std::memory_order_seq_cst) >= stage;
  }

  void publish(std::int64_t device, const Operation&, std::uint64_t stage);
  Expected<> await(std::int64_t device, const Operation&, std::int64_t member, std::uint64_t stage);
  Expected<> await_all(std::int64_t device, const Operation&, std::uint64_t stage);
  bool spin_until(std::int64_t member, const Operation&, std::uint64_t stage);
  std::optional<Error> sleep_until(std::int64_t device, const Operation&, std::int64_t member, std::uint64_t stage);
  template <typename Come, typename TooLate>
  void sleep(std::unique_lock<std::mutex>&, Device&, const Come& has_come, const TooLate& too_late);
  Mailbox& mailbox(const Operation&, std::int64_t source, std::int64_t target);
  Expected<> check_agreement(std::int64_t device, const Operation&);
  bool all_wait_in_vain();
  void fail_locked(Error);
  Error waits_in_vain();
  Error too_late(std::int64_t device, const Operation&, std::uint64_t stage);
  Error too_late(std::int64_t device, const Operation&, const std::string& missing) const;
  std::string whereabouts(std::int64_t device);

  const std::int64_t num_operations_;
  std::chrono::milliseconds timeout_ = kDefaultTimeout;
  bool spin_ = false;
  std::unique_ptr<Line[]> lines_;
  std::vector<Device> devices_;
  std::atomic<bool> failed_ = false;
  std::atomic<std::int64_t> sleepers_ = 0;
  mutable std::mutex mutex_;
  std::int64_t ended_ = 0;
  std::optional<Error> error_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Mailbox> mail_;  ///< by mailbox, source and target
};

/// Of a Take without a source: writes zeros to the arrays.
void clear(const Operation&, Rendezvous::Buffers arrays);

}  // namespace hloom::collectives
