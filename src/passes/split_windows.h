#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes a reduce-window of many elements several of few: dimension by dimension, and along one by windows of windows. For
/// reducers of one operation that may be taken in any order, and sums of floats, whose order is then that of the windows.
/// Running folds stay as they are.
/// Cost: linear. No errors.
Expected<Changed> split_windows(hlo::Module&);

}  // namespace hloom::passes
