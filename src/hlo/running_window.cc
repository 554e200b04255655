#include "hlo/running_window.h"

namespace hloom::hlo {
namespace {

bool steps_by_one(const WindowDim& w) { return w.stride == 1 && w.lhs_dilate == 1 && w.rhs_dilate == 1; }

// Whether what is folded so far may stand where elements do.
bool takes_either_first(const Computation& reducer) {
  const std::int64_t n = std::ssize(reducer.parameters()) / 2;
  for (std::int64_t k = 0; k < n; ++k)
    if (reducer.parameter(k)->shape().dtype() != reducer.parameter(n + k)->shape().dtype()) return false;
  return true;
}

}  // namespace

std::optional<RunningWindow> running_window(const Window& window, const Dims& from, const Dims& to, const Computation& reducer) {
  std::optional<RunningWindow> found;
  for (std::size_t d = 0; d < window.size(); ++d) {
    const WindowDim& w = window[d];
    if (to[d] == from[d] && w == WindowDim()) continue;
    const bool grows = steps_by_one(w) && w.pad_low >= to[d] - 1 && w.size > w.pad_low && to[d] <= from[d];
    const bool shrinks = steps_by_one(w) && w.pad_low == 0 && w.size >= from[d] && to[d] == from[d];
    if (found || !(grows || shrinks)) return std::nullopt;
    found = {.dim = static_cast<std::int64_t>(d), .from_first = grows, .ahead = grows ? w.size - w.pad_low - 1 : 0};
  }
  if (found && !found->from_first && !takes_either_first(reducer)) return std::nullopt;
  return found;
}

std::optional<RunningWindow> running_window(const Instruction& i) {
  const Shape& to = i.shape().is_tuple() ? i.shape().element(0) : i.shape();
  return running_window(i.attr<WindowAttr>().window, i.operand(0)->shape().dims(), to.dims(), *i.to_apply());
}

}  // namespace hloom::hlo
