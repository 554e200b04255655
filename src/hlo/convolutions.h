// What several stages ask about a convolution's groups.
#pragma once

#include <cstdint>

#include "hlo/instruction.h"

namespace hloom::hlo {

/// How many features of the result a group has. Needs: a convolution.
std::int64_t features_in_group(const Instruction& convolution);

/// Whether it has groups, and each has so few features that no element is used often: depthwise convolutions, and the
/// gradients of their kernels. Tiles of a dot have nothing to share there; loops over the result's elements do them.
bool has_thin_groups(const Instruction& convolution);

/// Whether it has thin groups of batches, each of one batch and one feature, whose numbers lie densest in both operands: the
/// gradient of a depthwise convolution's kernel. Each channel is a sum over all places, and channels go side by side.
bool sums_by_channel(const Instruction& convolution);

}  // namespace hloom::hlo
