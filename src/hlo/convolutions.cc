#include "hlo/convolutions.h"

#include <algorithm>

namespace hloom::hlo {

std::int64_t features_in_group(const Instruction& convolution) {
  const auto& c = convolution.attr<ConvolutionAttr>();
  return convolution.operand(1)->shape().dim(c.dims.kernel_output) / std::max(c.feature_groups, c.batch_groups);
}

bool has_thin_groups(const Instruction& convolution) {
  constexpr std::int64_t kThin = 4;
  const auto& c = convolution.attr<ConvolutionAttr>();
  if (c.feature_groups == 1 && c.batch_groups == 1) return false;
  // Products of a group at one place of the window are those of these many features with these many others.
  const std::int64_t others = c.feature_groups > 1 ? convolution.operand(1)->shape().dim(c.dims.kernel_input)
                                                   : convolution.shape().dim(c.dims.output_batch);
  return features_in_group(convolution) < kThin || others < kThin;
}

bool sums_by_channel(const Instruction& convolution) {
  constexpr std::int64_t kLeastChannels = 8;
  const auto& c = convolution.attr<ConvolutionAttr>();
  if (c.batch_groups < kLeastChannels || c.feature_groups > 1 || features_in_group(convolution) != 1) return false;
  const auto densest = [&](std::int64_t number) {
    const auto& order = convolution.operand(number)->shape().layout().minor_to_major;
    return order.empty() ? -1 : order.front();
  };
  return convolution.shape().dim(c.dims.output_batch) == 1 && densest(0) == c.dims.input_batch && densest(1) == c.dims.kernel_output;
}

}  // namespace hloom::hlo
