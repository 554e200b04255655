// What goes by levels: values that differ in their extent along one dimension alone, as in a scan written by halves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace hloom::fusion {

/// Arrays of equal dimensions but for one, along which slices, pads and concatenates go from one to the other.
struct LevelSpace {
  std::size_t along = 0;
  std::vector<std::int64_t> dims;  ///< 0 at `along`
  bool operator==(const LevelSpace&) const = default;
};

/// The space of a slice, pad or concatenate that changes one dimension; none for others.
std::optional<LevelSpace> level_space(const hlo::Instruction&);

/// Whether this is a slice, pad or concatenate that changes no other dimension than the one along; that neither, perhaps.
bool moves_along(const hlo::Instruction&, const LevelSpace&);

/// Whether an array has these dimensions, with at least one element along.
bool lies_in(const Shape&, const LevelSpace&);

/// Whether `user`, which lies in the space, reads operand `k`, which does too, at its own index in all dimensions but the one
/// along: slices, pads and concatenates of this space, and elementwise operations.
bool stays_in_line(const hlo::Instruction& user, std::int64_t k, const LevelSpace&);

/// Whether a kernel by levels makes all elements of a value before those that are made of it: what is read at several
/// places. Others are computed where they are read; slices always are.
bool is_kept_level(const hlo::Instruction&);

/// How many lines go side by side, one in each lane, and along which dimension.
struct LevelLanes {
  std::size_t dim = 0;
  std::int64_t lanes = 0;
  bool turned = false;  ///< results lie dense along the lines, not across: lines are turned over on the way in and out
  bool fits = false;    ///< what it keeps stays near, and there is enough to do at once
};

/// Chooses them for a kernel with these members and operands.
LevelLanes level_lanes(const LevelSpace&, const std::vector<const hlo::Instruction*>& members,
                                      const std::vector<const hlo::Instruction*>& operands, const Shape& result);

}  // namespace hloom::fusion
