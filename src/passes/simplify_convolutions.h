#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Lets a convolution go over its kernel backwards instead of reversing the kernel, and makes one of few positions with base
/// dilation, as in the gradient of a strided one, several without: places of the result that are the same modulo the dilation
/// have the same part of the kernel, and the input's own elements are all that counts for them.
/// Cost: linear, and the results' number for each dilation. No errors.
Expected<Changed> simplify_convolutions(hlo::Module&);

}  // namespace hloom::passes
