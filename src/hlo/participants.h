// Who takes part in a collective: the groups' mode, and groups as lists of ids (hlo-ops 12.1).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hlo/instruction.h"
#include "hloom/error.h"

namespace hloom::hlo {

enum class GroupMode : std::uint8_t { CrossReplica, CrossPartition, CrossReplicaAndPartition, FlattenedId };

/// Whether the opcode is a collective with replica groups or source-target pairs (its -start form included).
bool has_participants(Opcode);

/// The mode, which says what the ids of the groups are: replicas (run for each partition), partitions (run for each
/// replica), replicas with all their partitions, or devices.
/// Needs: has_participants(). Errors: InvalidArgument if global ids are asked for without a channel.
Expected<GroupMode> group_mode(const Instruction&);

/// How many ids there are in the instruction's mode, from the module's replica and partition counts.
Expected<std::int64_t> num_group_ids(const Instruction&);

/// Members of a group, counted in devices that exchange data: the size of the first group.
/// Errors: InvalidArgument if the mode or the form of the groups is broken.
Expected<std::int64_t> group_size(const Instruction&);

/// The groups as lists of ids; none written: one of everyone. Permutes have none, so theirs are empty.
/// Errors: InvalidArgument if the form is broken, an id is out of range, missing or repeated, or sizes differ where
///         they may not. Cost: the number of ids.
Expected<std::vector<std::vector<std::int64_t>>> group_ids(const Instruction&);

/// The devices (replica·num_partitions + partition) that exchange data with each other, in the order of their ranks, from
/// the module's replica and partition counts: each group of ids once for each partition or replica that runs it.
/// Errors: as group_ids(). Cost: the number of devices.
Expected<std::vector<std::vector<std::int64_t>>> device_groups(const Instruction&);

/// The source-target pairs of a permute as devices. Errors: as group_ids().
Expected<std::vector<std::pair<std::int64_t, std::int64_t>>> device_pairs(const Instruction&);

}  // namespace hloom::hlo
