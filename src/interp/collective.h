// What collectives share.
#pragma once

#include <vector>

#include "interp/ops.h"

namespace hloom::interp {

/// The devices that exchange data with this one in the instruction, in the order of their ranks (hlo-ops 12.1); none if
/// this device is in no group. Errors: InvalidArgument if the groups do not fit the devices there are.
Expected<std::vector<std::int64_t>> group_of(const Call&);
/// All ids of the instruction's mode as devices, for this device's replica or partition.
Expected<std::vector<std::int64_t>> everyone(const Call&);
/// As Fabric::exchange; a device that is alone meets itself.
Expected<std::vector<Value>> exchange(const Call&, const std::vector<std::int64_t>& group, Value mine);
/// The place of this device in the group.
std::int64_t rank_in(const Call&, const std::vector<std::int64_t>& group);
/// The operands as one value to exchange.
Value operands_of(const Call&);
/// The first sizes[d] elements of each dimension.
hlo::Literal cropped(const hlo::Literal&, const Dims& sizes);
/// Operand i of all members, of the smallest run-time sizes that one of them has.
std::vector<hlo::Literal> agreed(const std::vector<Value>& given, std::int64_t i);
/// Piece `index` of `count` equal ones along the dimension.
hlo::Literal piece_of(const hlo::Literal&, std::int64_t dimension, std::int64_t index, std::int64_t count);
/// The arrays one after the other along the dimension.
hlo::Literal joined(const std::vector<hlo::Literal>& pieces, std::int64_t dimension, const Shape& shape);

}  // namespace hloom::interp
