// Sends and receives between devices of a program: who sends to whom, and which send a receive is for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::hlo {

struct DeviceTransfer {
  /// What is sent from one device to another is received there in its order, mailbox by mailbox.
  std::int64_t mailbox = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  ///< devices: source, target

  /// The device that sends to this one; -1: none does.
  std::int64_t source_of(std::int64_t device) const;
  /// The device that this one sends to; -1: none.
  std::int64_t target_of(std::int64_t device) const;
};

/// The custom calls that these sends and receives become: (value, token) → token, and (token) → (value, token).
inline constexpr std::string_view kSendToDevice = "hloom.send_to_device", kTakeFromDevice = "hloom.take_from_device";

/// The transfers of a module, as long as nobody changes it.
class DeviceTransfers {
 public:
  explicit DeviceTransfers(const Module&);

  /// Of a send, recv or recv-done that is no transfer to or from the host. Pairs stand in the frontend attribute
  /// _xla_send_recv_source_target_pairs of sends and recvs, as replicas if there is one partition or no channel of 1 or more, else
  /// as partitions. Sends and recvs of one channel meet; those whose channel the other side has not meet by their pairs.
  /// Errors: InvalidArgument if pairs do not fit the devices; Unimplemented, naming the instruction, if they are not said, or if a
  ///         recv-done does not follow its recv and several have its channel.
  Expected<DeviceTransfer> of(const Instruction&) const;

 private:
  using Channel = std::optional<std::int64_t>;

  Expected<DeviceTransfer> of_start(const Instruction& start) const;
  Expected<const Instruction*> recv_of(const Instruction& done) const;

  const Module& module_;
  std::map<Channel, std::vector<const Instruction*>> sends_, recvs_;
};

/// Pairs (send, receive) of one computation, the first to run before the second: a device that waits for others has sent
/// what they may wait for, unless that needs what it waits for, these pairs included. Both in the order in which they run.
std::vector<std::pair<Instruction*, Instruction*>> sends_before_receives(const std::vector<Instruction*>& sends,
                                                                         const std::vector<Instruction*>& receives);

/// The backend_config of those custom calls.
std::string to_text(const DeviceTransfer&);
/// Of a custom call of that target. Errors: InvalidArgument if the text is another's, or does not fit the devices.
Expected<DeviceTransfer> read_device_transfer(const Instruction& call);

}  // namespace hloom::hlo
