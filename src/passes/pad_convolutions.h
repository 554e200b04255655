#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Puts the padding and the base dilation of large convolutions into their input, so that each product counts and the kernels
/// of dots can do them. A product with padding is 0 then, where it was left out: the same unless the convolution's kernel
/// holds what is not finite. A kernel that is no constant is looked at when the program runs, and goes by the convolution as
/// it was if so. Convolutions with thin groups stay as they are, but for those that
/// sum by channel.
/// Cost: linear, and the kernels' constants. No errors.
Expected<Changed> pad_convolutions(hlo::Module&);

}  // namespace hloom::passes
