// Transfers between a program and its host (hlo-ops 11).
#include "base/try.h"
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

Expected<std::int64_t> host_channel(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::TransferAttr>();
  if (attr.is_host_transfer) return attr.channel_id.value_or(0);
  return fail(Code::Unimplemented, call.instruction.name(), ": no transfers between devices, only to and from the host");
}

}  // namespace

Expected<Value> infeed(const Call& call) { return take(call, {}); }
Expected<Value> outfeed(const Call& call) { return give(call, {}); }

// (value, context, token)
Expected<Value> send(const Call& call) {
  const std::int64_t channel = TRY(host_channel(call));
  Value token = TRY(give(call, channel));
  return Value::tuple({call.operands[0], Value(hlo::Literal(call.shape.element(1))), std::move(token)});
}

Expected<Value> recv(const Call& call) {
  TRY(host_channel(call));
  return Value::tuple({Value(hlo::Literal(call.shape.element(0))), Value(hlo::Literal(call.shape.element(1))), call.operands[0]});
}

Expected<Value> send_done(const Call& call) { return call.operands[0].element(2); }

// The value is taken here, so that what the host waits for can be sent after the recv.
Expected<Value> recv_done(const Call& call) {
  const std::int64_t channel = TRY(host_channel(call));
  return take(call, channel);
}

std::optional<Expected<Value>> host_transfer(const Call& call) {
  const std::string& target = call.instruction.attr<hlo::CustomCallAttr>().target;
  if (target != library::kTakeFromHost && target != library::kGiveToHost) return std::nullopt;
  const auto attributes = library::parse_attributes(call.instruction.annotations().backend_config);
  const auto channel = attributes ? attributes->integer("channel") : std::nullopt;
  return target == library::kTakeFromHost ? take(call, channel) : give(call, channel);
}

}  // namespace hloom::interp
