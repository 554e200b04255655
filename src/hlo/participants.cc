#include "hlo/participants.h"

#include <algorithm>
#include <numeric>

#include "hlo/infer_rules.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

// More than any machine has; keeps a broken count from becoming a huge list.
constexpr std::int64_t kMaxIds = 1 << 24;

bool has_flattened_mode(Opcode opcode) {
  switch (opcode) {
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::ReduceScatter:
    case Opcode::CollectiveReduce: return true;
    default: return false;
  }
}

std::optional<std::int64_t> bounded_product(const std::vector<std::int64_t>& factors) {
  std::int64_t product = 1;
  for (const std::int64_t f : factors) {
    if (f < 1 || f > kMaxIds) return std::nullopt;
    product *= f;
    if (product > kMaxIds) return std::nullopt;
  }
  return product;
}

bool is_permutation_of(const std::vector<std::int64_t>& perm, std::size_t rank) {
  std::vector<std::int64_t> sorted = perm;
  std::ranges::sort(sorted);
  for (std::size_t k = 0; k < sorted.size(); ++k)
    if (sorted[k] != static_cast<std::int64_t>(k)) return false;
  return sorted.size() == rank;
}

bool is_sound(const IotaList& list, std::int64_t count) {
  return bounded_product(list.dims) == count && (list.perm.empty() || is_permutation_of(list.perm, list.dims.size()));
}

Expected<> want_sound_iota(const Instruction& i, const ReplicaGroups& g) {
  const auto count = bounded_product({g.num_groups, g.group_size});
  if (!count || !is_sound(g.iota, *count))
    return wrong(i, "replica_groups [", g.num_groups, ",", g.group_size, "] do not match their iota list");
  return {};
}

Expected<> want_sound_mesh(const Instruction& i, const ReplicaGroups& g) {
  std::vector<std::int64_t> sizes;
  for (const auto& [name, size] : g.mesh.axes) sizes.push_back(size);
  const auto count = bounded_product(sizes);
  if (!count) return wrong(i, "the mesh of replica_groups has no or too many devices");
  if (!g.mesh.device_ids.empty() && static_cast<std::int64_t>(g.mesh.device_ids.size()) != *count)
    return wrong(i, "the mesh of replica_groups has ", *count, " places and ", g.mesh.device_ids.size(), " devices");
  if (g.mesh.device_iota && !is_sound(*g.mesh.device_iota, *count))
    return wrong(i, "the mesh of replica_groups does not match its iota list");
  for (const MeshAxis& axis : g.axes) {
    const auto found = std::ranges::find(g.mesh.axes, axis.name, [](const auto& a) { return a.first; });
    if (found == g.mesh.axes.end()) return wrong(i, "replica_groups name axis '", axis.name, "', which the mesh lacks");
    if (axis.pre == 0) continue;
    const auto part = bounded_product({axis.pre, axis.size});
    if (!part || found->second % *part != 0)
      return wrong(i, "axis '", axis.name, "' of size ", found->second, " has no part (", axis.pre, ")", axis.size);
  }
  return {};
}

Expected<> want_sound(const Instruction& i, const ReplicaGroups& g) {
  switch (g.form) {
    case ReplicaGroups::Form::Explicit: return {};
    case ReplicaGroups::Form::Iota: return want_sound_iota(i, g);
    case ReplicaGroups::Form::Mesh: return want_sound_mesh(i, g);
  }
  return {};
}

// Ids in each group, of sound groups that are written.
std::int64_t ids_in_first_group(const ReplicaGroups& g) {
  if (g.form == ReplicaGroups::Form::Explicit) return static_cast<std::int64_t>(g.groups.front().size());
  if (g.form == ReplicaGroups::Form::Iota) return g.group_size;
  std::int64_t size = 1;
  for (const MeshAxis& axis : g.axes)
    size *= axis.pre != 0 ? axis.size
                          : std::ranges::find(g.mesh.axes, axis.name, [](const auto& a) { return a.first; })->second;
  return size;
}

Expected<> want_partition_of_ids(const Instruction& i, const std::vector<std::vector<std::int64_t>>& groups,
                                 std::int64_t ids) {
  std::vector<bool> seen(static_cast<std::size_t>(ids));
  std::int64_t count = 0;
  const bool may_differ = i.opcode() == Opcode::AllReduce || i.opcode() == Opcode::AllReduceStart;
  for (const auto& group : groups) {
    if (group.empty()) return wrong(i, "a replica group is empty");
    if (!may_differ && group.size() != groups.front().size())
      return wrong(i, "replica groups of ", groups.front().size(), " and ", group.size(), " members must be equal");
    for (const std::int64_t id : group) {
      if (id < 0 || id >= ids) return wrong(i, "replica groups name id ", id, " of ", ids);
      if (seen[static_cast<std::size_t>(id)]) return wrong(i, "replica groups name id ", id, " twice");
      seen[static_cast<std::size_t>(id)] = true;
      ++count;
    }
  }
  const bool may_leave_out = i.opcode() == Opcode::CollectiveBroadcast;
  if (count != ids && !may_leave_out) return wrong(i, "replica groups name ", count, " of ", ids, " ids");
  return {};
}

}  // namespace

bool has_participants(Opcode opcode) {
  switch (opcode) {
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart:
    case Opcode::RaggedAllToAll: return true;
    default: return has_flattened_mode(opcode);
  }
}

Expected<GroupMode> group_mode(const Instruction& i) {
  const auto* permute = i.attributes().get_if<PermuteAttr>();
  const bool has_channel = permute ? permute->channel_id.has_value() : i.attr<CollectiveAttr>().channel_id.has_value();
  const bool is_global = !permute && i.attr<CollectiveAttr>().use_global_device_ids;
  if (!has_flattened_mode(i.opcode())) return has_channel ? GroupMode::CrossPartition : GroupMode::CrossReplica;
  if (is_global && !has_channel) return wrong(i, "use_global_device_ids needs a channel_id");
  if (is_global) return GroupMode::FlattenedId;
  return has_channel ? GroupMode::CrossReplicaAndPartition : GroupMode::CrossReplica;
}

Expected<std::int64_t> num_group_ids(const Instruction& i) {
  const GroupMode mode = TRY(group_mode(i));
  const ModuleConfig& config = i.module().config();
  const bool both = mode == GroupMode::FlattenedId;
  const std::int64_t replicas = mode == GroupMode::CrossPartition ? 1 : config.replica_count;
  const std::int64_t partitions = both || mode == GroupMode::CrossPartition ? config.num_partitions : 1;
  const auto count = bounded_product({replicas, partitions});
  if (!count) return wrong(i, "replica_count ", replicas, " and num_partitions ", partitions, " are out of range");
  return *count;
}

Expected<std::int64_t> group_size(const Instruction& i) {
  const GroupMode mode = TRY(group_mode(i));
  const ReplicaGroups& groups = i.attr<CollectiveAttr>().groups;
  TRY(want_sound(i, groups));
  const std::int64_t ids = TRY(num_group_ids(i));
  const std::int64_t members = groups.empty() ? ids : ids_in_first_group(groups);
  if (mode != GroupMode::CrossReplicaAndPartition) return members;
  const auto size = bounded_product({members, i.module().config().num_partitions});
  if (!size) return wrong(i, "a group of ", members, " replicas with all their partitions is out of range");
  return *size;
}

Expected<std::vector<std::vector<std::int64_t>>> group_ids(const Instruction& i) {
  using Groups = std::vector<std::vector<std::int64_t>>;
  const std::int64_t ids = TRY(num_group_ids(i));
  const auto* attr = i.attributes().get_if<CollectiveAttr>();
  if (attr == nullptr) return Groups();
  if (attr->groups.empty()) {
    if (attr->use_global_device_ids) return wrong(i, "replica_groups of global device ids may not be empty");
    std::vector<std::int64_t> everyone(static_cast<std::size_t>(ids));
    std::iota(everyone.begin(), everyone.end(), 0);
    return Groups{std::move(everyone)};
  }
  TRY(want_sound(i, attr->groups));
  Groups groups = attr->groups.expand();
  TRY(want_partition_of_ids(i, groups, ids));
  return groups;
}

Expected<std::vector<std::vector<std::int64_t>>> device_groups(const Instruction& i) {
  const GroupMode mode = TRY(group_mode(i));
  const std::int64_t replicas = i.module().config().replica_count, partitions = i.module().config().num_partitions;
  std::vector<std::vector<std::int64_t>> groups;
  for (const std::vector<std::int64_t>& ids : TRY(group_ids(i))) {
    std::vector<std::int64_t> devices;
    switch (mode) {
      case GroupMode::CrossReplica:
        for (std::int64_t p = 0; p < partitions; ++p) {
          devices.clear();
          for (const std::int64_t replica : ids) devices.push_back(replica * partitions + p);
          groups.push_back(devices);
        }
        break;
      case GroupMode::CrossPartition:
        for (std::int64_t r = 0; r < replicas; ++r) {
          devices.clear();
          for (const std::int64_t partition : ids) devices.push_back(r * partitions + partition);
          groups.push_back(devices);
        }
        break;
      case GroupMode::CrossReplicaAndPartition:
        for (const std::int64_t replica : ids)
          for (std::int64_t p = 0; p < partitions; ++p) devices.push_back(replica * partitions + p);
        groups.push_back(std::move(devices));
        break;
      case GroupMode::FlattenedId: groups.push_back(ids); break;
    }
  }
  return groups;
}

Expected<std::vector<std::pair<std::int64_t, std::int64_t>>> device_pairs(const Instruction& i) {
  const bool of_partitions = TRY(group_mode(i)) == GroupMode::CrossPartition;
  const std::int64_t replicas = i.module().config().replica_count, partitions = i.module().config().num_partitions;
  const std::int64_t ids = TRY(num_group_ids(i));
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const auto& [source, target] : i.attr<PermuteAttr>().pairs) {
    if (source < 0 || target < 0 || source >= ids || target >= ids)
      return wrong(i, "names the pair {", source, ",", target, "} of ", ids, " ids");
    for (std::int64_t k = 0; k < (of_partitions ? replicas : partitions); ++k)
      pairs.emplace_back(of_partitions ? k * partitions + source : source * partitions + k,
                         of_partitions ? k * partitions + target : target * partitions + k);
  }
  return pairs;
}

}  // namespace hloom::hlo
