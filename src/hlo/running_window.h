// Windows that grow by an element from one to the next: running sums and their like, which need one step an element. In which order
// these are taken is a part of the numeric contract that the interpreter, kernels and checks have to agree on.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace hloom::hlo {

struct RunningWindow {
  std::int64_t dim = 0;     ///< the only one along which windows are wider than an element
  bool from_first = true;   ///< windows hold the elements from the first on; else those to the last, and the last window is the shortest
  std::int64_t ahead = 0;   ///< elements that the first window holds, where there are as many, besides its own
};

/// How a reduce-window by `reducer` over arrays of dimensions `from` that gives `to` runs, if it does. From the first, a step folds
/// (so far, element); from the last, (element, so far), so that elements stand in their order.
std::optional<RunningWindow> running_window(const Window&, const Dims& from, const Dims& to, const Computation& reducer);
/// Needs: a reduce-window.
std::optional<RunningWindow> running_window(const Instruction&);

}  // namespace hloom::hlo
