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

}  // namespace hloom::hlo
