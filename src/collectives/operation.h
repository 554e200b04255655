// A collective as every participant knows it: who belongs together and how the arrays are cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel_abi.h"

namespace hloom::collectives {

enum class Kind : std::uint8_t {
  AllGather,      ///< everybody's array, one after the other in the order of ranks
  AllReduce,      ///< the fold of everybody's array, in the order of ranks
  ReduceScatter,  ///< a piece of the fold: that of the own rank
  AllToAll,       ///< piece `rank` of everybody's array
  Exchange,       ///< array `rank` of everybody's: the form of all-to-all whose operands are the pieces
  Permute,        ///< the source's array, zeros without a source
  Broadcast,      ///< the root's array, zeros for devices in no group
  Reduce,         ///< the fold for the root, zeros for the others
  Ragged,         ///< rows of everybody's array; how many, from where and to where is data
  Send,           ///< no meeting: leaves copies of the arrays for the target
  Take,           ///< no meeting: what the source left first, zeros without a source
};

/// Folds pieces of the members of a group: buffers are one operand for each member in the order of ranks, then
/// the results that are written. Called for ranges of `blocks`, by several participants at once.
struct Fold {
  std::int64_t members = 0;
  base::KernelFunction function = nullptr;
  std::int64_t blocks = 0;
};

/// One operand with its result. As its bytes lie in memory an array is `rows` times a run of bytes along the dimension
/// that the collective cuts or joins; `piece_bytes` of each run are one member's. Collectives without such a dimension
/// have one row and one piece.
struct Array {
  std::int64_t rows = 1;
  std::int64_t piece_bytes = 0;
  std::vector<Fold> folds;  ///< one for each size of groups that there is
};

/// Where a device stands: its group, and its rank there.
struct Member {
  std::int32_t group = -1;  ///< -1: it is in none
  std::int32_t rank = -1;
};

struct Operation {
  std::string name;         ///< the instruction's, for messages
  std::int64_t number = 0;  ///< among the operations of the program
  Kind kind = Kind::AllGather;
  std::vector<std::vector<std::int64_t>> groups;  ///< devices that exchange data, in the order of their ranks
  std::vector<Member> members;                    ///< by device
  std::vector<std::int64_t> sources;              ///< Permute, Take: by device the one it receives from, or -1
  std::vector<std::int64_t> targets;              ///< Send: by device the one that it sends to, or -1
  std::int64_t mailbox = 0;                       ///< Send, Take: those of one mailbox meet, for each pair of devices in their order
  std::vector<Array> arrays;                      ///< Exchange: one for each member
  /// Broadcast, Reduce: behind the other operands stands one integer, the device that is root; else rank 0 is.
  bool root_is_data = false;
  /// Of Ragged's offsets and sizes, or of the root that is data.
  std::int64_t index_bytes = 4;
  bool index_is_signed = true;
  std::int64_t ragged_entries = 0;      ///< rows sent to each member, in so many pieces
  std::int64_t row_bytes = 0;           ///< Ragged
  std::int64_t input_rows = 0, output_rows = 0;

  std::int64_t num_operands() const;    ///< buffers in front of the results; of Send the arrays stand where results do
  const Member& member(std::int64_t device) const { return members[static_cast<std::size_t>(device)]; }
  /// The devices that this one meets; empty if it is in no group.
  const std::vector<std::int64_t>& group_of(std::int64_t device) const;
};

/// Sets groups and members. Needs: no device twice, all below num_devices.
void set_groups(Operation&, std::vector<std::vector<std::int64_t>> groups, std::int64_t num_devices);

/// Sets sources from pairs of devices (source, target). Devices that pairs join, directly or over others, are a group;
/// the rest meets nobody. Needs: each target at most once. Cost: the number of devices and pairs.
void set_pairs(Operation&, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::int64_t num_devices);

/// Sets sources and targets for Send and Take. Needs: each source and each target at most once.
void set_transfer(Operation&, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::int64_t num_devices);

/// What differs in what two participants take for the same collective, in words; nothing if they agree.
std::optional<std::string> difference(const Operation& a, const Operation& b);

}  // namespace hloom::collectives
