// Convolutions in plain loops, for those that are too rare for a kernel of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "library/routine.h"

namespace hloom::library {

/// hlo-ops 8.4: a product counts only where the input has the element. Strides are in elements.
struct ConvolutionProblem {
  struct Spatial {
    std::int64_t size = 1, stride = 1, pad_low = 0, input_dilation = 1, kernel_dilation = 1;  ///< of the window
    bool reversed = false;
    std::int64_t input_size = 1, result_size = 1;
    std::int64_t input_stride = 0, kernel_stride = 0, result_stride = 0;
  };
  bool is_double = false;  ///< all arrays are f64, else f32
  std::int64_t input_start = 0;  ///< where the input's first element lies
  std::int64_t batch = 1, input_features = 1, output_features = 1;
  std::int64_t batch_input_stride = 0, batch_result_stride = 0;
  std::int64_t feature_input_stride = 0, feature_kernel_stride = 0;         ///< of input features
  std::int64_t feature_out_kernel_stride = 0, feature_out_result_stride = 0;  ///< of output features
  std::int64_t features_in_group = 1;   ///< of the result; each group's input begins a stride after the last one's
  std::int64_t group_input_stride = 0;
  std::vector<Spatial> spatial;
};

/// A block for each place of the result, with all its features. Sums go over the kernel's places, then features, one after the
/// other. Cost: a multiplication and an addition for each product, without vectors.
RoutinePlan plan_convolution(const ConvolutionProblem&);

}  // namespace hloom::library
