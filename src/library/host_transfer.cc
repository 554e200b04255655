#include "library/host_transfer.h"

#include <cstring>
#include <memory>
#include <string>

#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"

namespace hloom::library {
namespace {

std::string words(const HostTransfer& t) {
  if (!t.channel) return t.takes ? "infeed" : "outfeed";
  return "channel " + std::to_string(*t.channel);
}

Expected<HostQueue*> queue_of(const HostPort& port, const HostTransfer& t) {
  if (port.host == nullptr)
    return fail(Code::FailedPrecondition, "the run has no host for its ", words(t), " (RunOptions::hosts)");
  if (t.channel) return t.takes ? &port.host->to_device(*t.channel) : &port.host->from_device(*t.channel);
  return t.takes ? &port.host->infeed() : &port.host->outfeed();
}

Error with_words(const HostTransfer& t, const Error& error) {
  return fail(error.code(), t.takes ? "takes from the host's " : "gives to the host's ", words(t), ": ", error.message());
}

std::int64_t dense_bytes(const Shape& shape) { return shape.num_elements() * byte_width(shape.dtype()); }

std::string list(const std::vector<Shape>& shapes) {
  std::string text = "(";
  for (const Shape& shape : shapes) text += (text.size() > 1 ? ", " : "") + to_string(shape, false);
  return text + ")";
}

Expected<> check(const HostTransfer& t, const HostValue& value) {
  std::vector<Shape> shapes;
  bool good = value.size() == t.arrays.size();
  for (std::size_t k = 0; k < value.size(); ++k) {
    shapes.push_back(value[k].shape);
    good = good && compatible(value[k].shape, t.arrays[k]);
  }
  if (!good) return fail(Code::InvalidArgument, "takes ", list(t.arrays), ", the host gave ", list(shapes));
  for (std::size_t k = 0; k < value.size(); ++k)
    if (std::ssize(value[k].bytes) != dense_bytes(t.arrays[k]))
      return fail(Code::InvalidArgument, "takes ", dense_bytes(t.arrays[k]), " bytes of ", to_string(t.arrays[k], false),
                  ", the host gave ", value[k].bytes.size());
  return {};
}

// Buffers: descriptor, status, port, arrays.
void transfer(void* const* buffers, std::int64_t block, std::int64_t, void*) {
  const HostTransfer* t;
  std::memcpy(&t, buffers[0], sizeof(t));
  const HostPort* run_port;
  std::memcpy(&run_port, buffers[2], sizeof(run_port));
  const HostPort none, &port = run_port == nullptr ? none : *run_port;
  const Expected<> done = t->takes ? take(port, *t, {buffers + 3, t->arrays.size()})
                                   : give(port, *t, {const_cast<const void* const*>(buffers + 3), t->arrays.size()});
  if (!done) base::report_failure(*static_cast<base::RunStatus*>(buffers[1]), block, done.error());
}

}  // namespace

std::optional<HostTransfer> host_transfer(std::string_view target, const ffi::Attributes& attributes,
                                          const std::vector<Shape>& operands, const std::vector<Shape>& results) {
  if (target != kTakeFromHost && target != kGiveToHost) return std::nullopt;
  HostTransfer transfer;
  transfer.takes = target == kTakeFromHost;
  transfer.channel = attributes.integer("channel");
  for (const Shape& leaf : transfer.takes ? results : operands)
    if (leaf.is_array()) transfer.arrays.push_back(leaf);
  return transfer;
}

Expected<> take(const HostPort& port, const HostTransfer& t, std::span<void* const> arrays) {
  HostQueue* queue = TRY(queue_of(port, t));
  const Expected<HostValue> value = queue->pop(port.wait);
  if (!value) return with_words(t, value.error());
  TRY(check(t, *value));
  for (std::size_t k = 0; k < arrays.size(); ++k)
    std::memcpy(arrays[k], (*value)[k].bytes.data(), (*value)[k].bytes.size());
  return {};
}

Expected<> give(const HostPort& port, const HostTransfer& t, std::span<const void* const> arrays) {
  HostQueue* queue = TRY(queue_of(port, t));
  HostValue value;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const Shape& shape = t.arrays[k];
    const auto* bytes = static_cast<const std::byte*>(arrays[k]);
    value.push_back({Shape::array(shape.dtype(), shape.dims()), {bytes, bytes + dense_bytes(shape)}});
  }
  const Expected<> done = queue->push(std::move(value), port.wait);
  if (!done) return with_words(t, done.error());
  return {};
}

RoutinePlan plan_host_transfer(HostTransfer t, const std::vector<Shape>& operands, const std::vector<Shape>& results) {
  const bool takes = t.takes;
  const auto kept = std::make_shared<const HostTransfer>(std::move(t));
  const HostTransfer* address = kept.get();
  Routine r;
  r.function = transfer;
  r.arguments = {{Argument::Kind::Descriptor}, {Argument::Kind::Status}, {Argument::Kind::HostPort}};
  const std::vector<Shape>& leaves = takes ? results : operands;
  for (std::size_t k = 0; k < leaves.size(); ++k)
    if (leaves[k].is_array())
      r.arguments.push_back({takes ? Argument::Kind::Result : Argument::Kind::Operand, static_cast<std::int64_t>(k)});
  r.descriptor = base::AlignedBytes(std::as_bytes(std::span(&address, 1)));
  RoutinePlan plan;
  plan.calls.push_back(std::move(r));
  plan.keeps = kept;
  return plan;
}

}  // namespace hloom::library
