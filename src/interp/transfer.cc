// Transfers between a program and its host (hlo-ops 11).
#include "base/try.h"
#include "hlo/device_transfers.h"
#include "interp/fabric.h"
#include "interp/ops.h"
#include "library/attributes.h"
#include "library/host_transfer.h"

namespace hloom::interp {
namespace {

using library::HostTransfer;

// Where the device's values come from and go to. While it waits the other devices run.
library::HostPort port_of(const Call& call) {
  const Options& options = call.machine.options();
  const std::int64_t device = call.machine.place().device;
  library::HostPort port;
  if (device < std::ssize(options.hosts)) port.host = &options.hosts[static_cast<std::size_t>(device)];
  port.wait = options.host_wait;
  if (Fabric* fabric = call.machine.fabric(); fabric != nullptr)
    port.wait.stopped = [fabric, device, also = options.host_wait.stopped] {
      fabric->yield(device);
      return fabric->failed() || (also && also());
    };
  return port;
}

// A wait that ends because another device failed is no error of its own.
Error named(const Call& call, const Error& error) {
  Fabric* fabric = call.machine.fabric();
  if (error.code() == Code::Cancelled && fabric != nullptr && fabric->failed())
    return Error(Code::Aborted, "another device stopped the run");
  return fail(error.code(), call.instruction.name(), ": ", error.message());
}

std::vector<Shape> arrays_of(const Shape& shape) {
  std::vector<Shape> arrays;
  for (const Shape* leaf : leaves(shape))
    if (leaf->is_array()) arrays.push_back(*leaf);
  return arrays;
}

Value assemble(const Shape& shape, std::vector<hlo::Literal>& arrays, std::size_t& at) {
  if (shape.is_array()) return Value(std::move(arrays[at++]));
  if (!shape.is_tuple()) return Value(hlo::Literal(shape));
  std::vector<Value> elements;
  for (const Shape& e : shape.elements()) elements.push_back(assemble(e, arrays, at));
  return Value::tuple(std::move(elements));
}

// The value in the result's shape, tokens among it.
Expected<Value> take(const Call& call, std::optional<std::int64_t> channel) {
  const HostTransfer transfer{true, channel, arrays_of(call.shape)};
  std::vector<hlo::Literal> arrays(transfer.arrays.begin(), transfer.arrays.end());
  std::vector<void*> to;
  for (hlo::Literal& array : arrays) to.push_back(array.mutable_bytes().data());
  const Expected<> done = library::take(port_of(call), transfer, to);
  if (!done) return named(call, done.error());
  std::size_t at = 0;
  return assemble(call.shape, arrays, at);
}

bool fits(const Value& value, const Shape& shape) {
  if (!value.is_tuple()) return !shape.is_tuple() && compatible(value.array().shape(), shape);
  if (!shape.is_tuple() || value.elements().size() != shape.elements().size()) return false;
  for (std::size_t k = 0; k < value.elements().size(); ++k)
    if (!fits(value.elements()[k], shape.elements()[k])) return false;
  return true;
}

void append_arrays(const Value& value, std::vector<const void*>& to) {
  if (!value.is_tuple()) {
    if (value.array().shape().is_array()) to.push_back(value.array().bytes().data());
    return;
  }
  for (const Value& element : value.elements()) append_arrays(element, to);
}

Expected<Value> give(const Call& call, std::optional<std::int64_t> channel) {
  const HostTransfer transfer{false, channel, arrays_of(call.instruction.operand(0)->shape())};
  std::vector<const void*> from;
  append_arrays(call.operands[0], from);
  const Expected<> done = library::give(port_of(call), transfer, from);
  if (!done) return named(call, done.error());
  return Value(hlo::Literal(Shape::token()));
}

bool is_host_transfer(const Call& call) { return call.instruction.attr<hlo::TransferAttr>().is_host_transfer; }
std::int64_t channel_of(const Call& call) { return call.instruction.attr<hlo::TransferAttr>().channel_id.value_or(0); }

Expected<hlo::DeviceTransfer> device_transfer_of(const Call& call) {
  return call.machine.device_transfers(call.instruction.module()).of(call.instruction);
}

Expected<Fabric*> others(const Call& call) {
  if (call.machine.fabric() != nullptr) return call.machine.fabric();
  return wrong(call, "runs without the device that it exchanges values with");
}

Expected<> post(const Call& call, const hlo::DeviceTransfer& transfer) {
  const std::int64_t device = call.machine.place().device, target = transfer.target_of(device);
  if (target < 0) return {};
  Fabric* fabric = TRY(others(call));
  fabric->post({transfer.mailbox, device, target}, call.operands[0]);
  return {};
}

Value zeros(const Shape& shape) {
  if (!shape.is_tuple()) return Value(hlo::Literal(shape));
  std::vector<Value> elements;
  for (const Shape& e : shape.elements()) elements.push_back(zeros(e));
  return Value::tuple(std::move(elements));
}

// (value, token): what the device's source sent it, or zeros if it has none.
Expected<Value> receive(const Call& call, const hlo::DeviceTransfer& transfer) {
  const std::int64_t device = call.machine.place().device, source = transfer.source_of(device);
  const Shape& shape = call.shape.element(0);
  Value token{hlo::Literal(Shape::token())};
  if (source < 0) return Value::tuple({zeros(shape), std::move(token)});
  Fabric* fabric = TRY(others(call));
  Value value = TRY(fabric->take({transfer.mailbox, source, device}, call.instruction));
  if (!fits(value, shape)) return wrong(call, "receives ", shape, ", and another array was sent");
  return Value::tuple({std::move(value), std::move(token)});
}

}  // namespace

Expected<Value> infeed(const Call& call) { return take(call, {}); }
Expected<Value> outfeed(const Call& call) { return give(call, {}); }

namespace {

Expected<> send_to_device(const Call& call) {
  const hlo::DeviceTransfer transfer = TRY(device_transfer_of(call));
  return post(call, transfer);
}

}  // namespace

// (value, context, token)
Expected<Value> send(const Call& call) {
  Value token{hlo::Literal(Shape::token())};
  if (is_host_transfer(call))
    token = TRY(give(call, channel_of(call)));
  else
    TRY(send_to_device(call));
  return Value::tuple({call.operands[0], Value(hlo::Literal(call.shape.element(1))), std::move(token)});
}

Expected<Value> recv(const Call& call) {
  if (!is_host_transfer(call)) TRY(device_transfer_of(call));
  return Value::tuple({zeros(call.shape.element(0)), Value(hlo::Literal(call.shape.element(1))), call.operands[0]});
}

Expected<Value> send_done(const Call& call) { return call.operands[0].element(2); }

// The value is taken here, so that what the host or another device waits for can be sent after the recv.
Expected<Value> recv_done(const Call& call) {
  if (is_host_transfer(call)) return take(call, channel_of(call));
  const hlo::DeviceTransfer transfer = TRY(device_transfer_of(call));
  return receive(call, transfer);
}

std::optional<Expected<Value>> device_transfer(const Call& call) {
  const std::string& target = call.instruction.attr<hlo::CustomCallAttr>().target;
  if (target != hlo::kSendToDevice && target != hlo::kTakeFromDevice) return std::nullopt;
  const auto transfer = hlo::read_device_transfer(call.instruction);
  if (!transfer) return Expected<Value>(transfer.error());
  if (target == hlo::kTakeFromDevice) return receive(call, *transfer);
  const Expected<> posted = post(call, *transfer);
  if (!posted) return Expected<Value>(posted.error());
  return Expected<Value>(Value(hlo::Literal(Shape::token())));
}

std::optional<Expected<Value>> host_transfer(const Call& call) {
  const std::string& target = call.instruction.attr<hlo::CustomCallAttr>().target;
  if (target != library::kTakeFromHost && target != library::kGiveToHost) return std::nullopt;
  const auto attributes = library::parse_attributes(call.instruction.annotations().backend_config);
  const auto channel = attributes ? attributes->integer("channel") : std::nullopt;
  return target == library::kTakeFromHost ? take(call, channel) : give(call, channel);
}

}  // namespace hloom::interp
