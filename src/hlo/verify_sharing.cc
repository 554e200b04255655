// What instructions share: fused computations (H704), participants (H722), channels (H723).
#include <map>
#include <set>

#include "hlo/participants.h"
#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

void check_permute(const Instruction& i, Report& report) {
  const auto ids = num_group_ids(i);
  if (!ids) return report.add_error("H722", i, ids.error());
  std::set<std::int64_t> sources, targets;
  for (const auto& [source, target] : i.attr<PermuteAttr>().pairs) {
    for (const std::int64_t id : {source, target})
      if (id < 0 || id >= *ids) report.add("H722", i, "source_target_pairs name ", id, " of ", *ids);
    if (!sources.insert(source).second) report.add("H722", i, "source ", source, " stands in two pairs");
    if (!targets.insert(target).second) report.add("H722", i, "target ", target, " stands in two pairs");
  }
}

void check_participants(const Instruction& i, Report& report) {
  if (!has_participants(i.opcode())) return;
  if (i.attributes().get_if<PermuteAttr>() != nullptr) return check_permute(i, report);
  if (const auto groups = group_ids(i); !groups) report.add_error("H722", i, groups.error());
}

std::optional<std::int64_t> channel_of(const Instruction& i) {
  if (const auto* a = i.attributes().get_if<CollectiveAttr>()) return a->channel_id;
  if (const auto* a = i.attributes().get_if<PermuteAttr>()) return a->channel_id;
  if (const auto* a = i.attributes().get_if<TransferAttr>()) return a->channel_id;
  return std::nullopt;
}

// Transfers and collectives have channels of their own. Collectives of any kind may share one: JAX gives all the first.
bool is_transfer(const Instruction& i) { return i.attributes().get_if<TransferAttr>() != nullptr; }

void check_channel(const Instruction& i, std::map<std::int64_t, const Instruction*>& channels, Report& report) {
  const auto channel = channel_of(i);
  if (!channel) return;
  if (*channel < 1) return report.add("H723", i, "channel_id ", *channel, " must be positive");
  const auto [entry, is_new] = channels.emplace(*channel, &i);
  const Instruction& other = *entry->second;
  if (!is_new && is_transfer(other) != is_transfer(i))
    report.add("H723", i, "channel_id ", *channel, " is that of ", other.name(), " (", other.opcode(), ")");
}

}  // namespace

void verify_sharing(const Module& module, Report& report) {
  std::map<std::int64_t, const Instruction*> channels;
  const auto called_by = callers(module);
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) {
      if (report.full()) return;
      check_participants(i, report);
      check_channel(i, channels, report);
      if (i.opcode() == Opcode::Fusion && called_by.at(i.called(0)).size() != 1)
        report.add("H704", i, "shares its computation ", i.called(0)->name(), " with another caller");
    }
}

}  // namespace hloom::hlo
