#include "hlo/device_transfers.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::hlo {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

constexpr std::string_view kPairs = "_xla_send_recv_source_target_pairs";

bool is_between_devices(const Instruction& i, Opcode opcode) {
  return i.opcode() == opcode && !i.attr<TransferAttr>().is_host_transfer;
}

// All numbers in a text, whatever is between them; nothing if one is too large.
std::optional<std::vector<std::int64_t>> numbers(std::string_view text) {
  std::vector<std::int64_t> all;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    if (*at < '0' || *at > '9') {
      ++at;
      continue;
    }
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return std::nullopt;
    all.push_back(number);
    at = next;
  }
  return all;
}

std::optional<Pairs> pairs_in(std::string_view text) {
  const auto all = numbers(text);
  if (!all || all->size() % 2 != 0) return std::nullopt;
  Pairs pairs;
  for (std::size_t k = 0; k < all->size(); k += 2) pairs.emplace_back((*all)[k], (*all)[k + 1]);
  return pairs;
}

Expected<> want_ids(const Instruction& i, const Pairs& pairs, std::int64_t ids) {
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto [source, target] = pairs[k];
    if (source >= ids || target >= ids)
      return fail(Code::InvalidArgument, i.name(), ": names the pair {", source, ",", target, "} among ", ids);
    for (std::size_t j = 0; j < k; ++j)
      if (pairs[j].first == source || pairs[j].second == target)
        return fail(Code::InvalidArgument, i.name(), ": a device sends or receives twice, as in the pair {", source, ",", target, "}");
  }
  return {};
}

Expected<> want_others(const Instruction& i, const DeviceTransfer& transfer) {
  const ModuleConfig& config = i.module().config();
  if (config.replica_count * config.num_partitions > 1 || transfer.pairs.empty()) return {};
  return fail(Code::Unimplemented, i.name(), ": the one device of a program has nobody to send to");
}

}  // namespace

std::int64_t DeviceTransfer::source_of(std::int64_t device) const {
  const auto found = std::ranges::find(pairs, device, [](const auto& pair) { return pair.second; });
  return found == pairs.end() ? -1 : found->first;
}

std::int64_t DeviceTransfer::target_of(std::int64_t device) const {
  const auto found = std::ranges::find(pairs, device, [](const auto& pair) { return pair.first; });
  return found == pairs.end() ? -1 : found->second;
}

DeviceTransfers::DeviceTransfers(const Module& module) : module_(module) {
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) {
      if (is_between_devices(i, Opcode::Send)) sends_[i.attr<TransferAttr>().channel_id].push_back(&i);
      if (is_between_devices(i, Opcode::Recv)) recvs_[i.attr<TransferAttr>().channel_id].push_back(&i);
    }
}

Expected<DeviceTransfer> DeviceTransfers::of(const Instruction& i) const {
  if (i.opcode() != Opcode::RecvDone) return of_start(i);
  return of_start(*TRY(recv_of(i)));
}

Expected<const Instruction*> DeviceTransfers::recv_of(const Instruction& done) const {
  if (done.operand(0)->opcode() == Opcode::Recv) return done.operand(0);
  const auto found = recvs_.find(done.attr<TransferAttr>().channel_id);
  if (found == recvs_.end()) return fail(Code::InvalidArgument, done.name(), ": no recv has its channel");
  const auto text = [](const Instruction* recv) {
    const auto& attributes = recv->annotations().frontend_attributes;
    const auto pairs = attributes.find(std::string(kPairs));
    return pairs == attributes.end() ? std::string() : pairs->second;
  };
  for (const Instruction* recv : found->second)
    if (text(recv) != text(found->second[0]))
      return fail(Code::Unimplemented, done.name(), ": does not follow its recv, and ", recv->name(), " and ",
                  found->second[0]->name(), " have its channel with other pairs");
  return found->second[0];
}

Expected<DeviceTransfer> DeviceTransfers::of_start(const Instruction& start) const {
  const auto& attributes = start.annotations().frontend_attributes;
  const auto text = attributes.find(std::string(kPairs));
  if (text == attributes.end())
    return fail(Code::Unimplemented, start.name(), ": a transfer between devices needs the frontend attribute ", kPairs,
                ": who sends to whom");
  const auto ids = pairs_in(text->second);
  if (!ids) return fail(Code::InvalidArgument, start.name(), ": ", kPairs, " must be pairs of ids, found ", text->second);
  const std::int64_t replicas = module_.config().replica_count, partitions = module_.config().num_partitions;
  const Channel channel = start.attr<TransferAttr>().channel_id;
  const bool of_partitions = partitions > 1 && (replicas == 1 || channel.value_or(0) > 0);
  TRY(want_ids(start, *ids, of_partitions ? partitions : replicas));
  DeviceTransfer transfer;
  for (const auto& [source, target] : *ids)
    for (std::int64_t k = 0; k < (of_partitions ? replicas : partitions); ++k)
      transfer.pairs.push_back(of_partitions ? std::pair(k * partitions + source, k * partitions + target)
                                             : std::pair(source * partitions + k, target * partitions + k));
  if (channel && sends_.contains(channel) && recvs_.contains(channel))
    transfer.mailbox = 1 + std::distance(sends_.begin(), sends_.find(channel));
  TRY(want_others(start, transfer));
  return transfer;
}

namespace {

using Later = std::unordered_map<const Instruction*, std::vector<Instruction*>>;

// What runs after `first` because of users, control edges or what is in `later`.
std::unordered_set<const Instruction*> reached_from(const Instruction& first, const Later& later) {
  std::unordered_set<const Instruction*> seen{&first};
  std::vector<const Instruction*> open{&first};
  const auto reach = [&](const std::vector<Instruction*>& all) {
    for (const Instruction* next : all)
      if (seen.insert(next).second) open.push_back(next);
  };
  while (!open.empty()) {
    const Instruction* at = open.back();
    open.pop_back();
    reach(at->users());
    reach(at->control_successors());
    if (const auto more = later.find(at); more != later.end()) reach(more->second);
  }
  return seen;
}

}  // namespace

std::vector<std::pair<Instruction*, Instruction*>> sends_before_receives(const std::vector<Instruction*>& sends,
                                                                         const std::vector<Instruction*>& receives) {
  std::vector<std::pair<Instruction*, Instruction*>> pairs;
  Later later;
  for (Instruction* receive : receives) {
    const std::unordered_set<const Instruction*> reached = reached_from(*receive, later);
    for (Instruction* send : sends) {
      if (send->parent() != receive->parent() || reached.contains(send)) continue;
      pairs.emplace_back(send, receive);
      later[send].push_back(receive);
    }
  }
  return pairs;
}

std::string to_text(const DeviceTransfer& transfer) {
  std::string text = "{mailbox = " + std::to_string(transfer.mailbox) + " : i64, pairs = array<i64";
  const char* between = ": ";
  for (const auto& [source, target] : transfer.pairs) {
    text += between + std::to_string(source) + ", " + std::to_string(target);
    between = ", ";
  }
  return text + ">}";
}

namespace {

bool holds_arrays(const Shape& shape) {
  return std::ranges::all_of(leaves(shape), [](const Shape* leaf) { return leaf->is_array(); });
}

// (value, token) → token, or (token) → (value, token).
bool has_the_form(const Instruction& call) {
  const Shape& result = call.shape();
  if (call.attr<CustomCallAttr>().target == kSendToDevice)
    return call.num_operands() == 2 && holds_arrays(call.operand(0)->shape()) && result.is_token();
  return result.is_tuple() && result.elements().size() == 2 && holds_arrays(result.element(0)) && result.element(1).is_token();
}

}  // namespace

Expected<DeviceTransfer> read_device_transfer(const Instruction& call) {
  if (!has_the_form(call)) return fail(Code::InvalidArgument, call.name(), ": is no transfer of arrays with a token");
  const std::string_view text = call.annotations().backend_config;
  constexpr std::string_view kFirst = "{mailbox = ", kThen = " : i64, pairs = array<i64";
  const std::size_t then = text.find(kThen);
  DeviceTransfer transfer;
  if (text.starts_with(kFirst) && then != std::string_view::npos) {
    const auto mailbox = numbers(text.substr(kFirst.size(), then - kFirst.size()));
    const auto pairs = pairs_in(text.substr(then + kThen.size()));
    if (mailbox && mailbox->size() == 1 && pairs) transfer = {(*mailbox)[0], *pairs};
  }
  if (to_text(transfer) != text)
    return fail(Code::InvalidArgument, call.name(), ": its backend_config is no mailbox and pairs of devices: ", text);
  const ModuleConfig& config = call.module().config();
  TRY(want_ids(call, transfer.pairs, config.replica_count * config.num_partitions));
  TRY(want_others(call, transfer));
  return transfer;
}

}  // namespace hloom::hlo
