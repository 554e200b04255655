// What is packed is an array of which each element is read once by one index of the loops: their strides, sorted, are those
// of an array of their extents. So panels are a permutation of it, filled up with zeros.
#include "kernels/dot_panels.h"

#include <algorithm>
#include <cstdlib>

namespace hloom::kernels {
namespace {

// Whether the axes go over an array of so many elements, each once.
bool is_permutation(const PanelOrder& order, std::int64_t num_elements) {
  std::vector<PanelOrder::Axis> all = order.outer;
  all.insert(all.end(), order.sums.begin(), order.sums.end());
  all.push_back(order.free);
  std::erase_if(all, [](const auto& a) { return a.extent == 1; });
  std::ranges::sort(all, {}, [](const auto& a) { return std::abs(a.stride); });
  std::int64_t next = 1;
  for (const auto& a : all) {
    if (std::abs(a.stride) != next) return false;
    next *= a.extent;
  }
  return next == num_elements;
}

}  // namespace

std::optional<PanelOrder> panel_order(const DotProblem& p, const DotFusion& fusion, const DotForm& form, std::int64_t operand) {
  if (form.kind != DotForm::Kind::Tile || form.channel_axis >= 0) return std::nullopt;
  const DotOperand& read = operand == 0 ? p.lhs : p.rhs;
  const std::size_t free = operand == 0 ? p.lhs_axis : p.rhs_axis;
  const bool by_lanes = (operand == 0) == form.swapped;
  if (fusion.byte_steps > 0 && !by_lanes) return std::nullopt;  // rows are perhaps 128 more than they are
  const hlo::Instruction* source = fusion.sources[static_cast<std::size_t>(operand)];
  if (!read.plain || source == nullptr) return std::nullopt;
  const auto axis = [&](std::size_t a) {
    return PanelOrder::Axis{p.extent(a), operand == 0 ? p.axes[a].lhs : p.axes[a].rhs};
  };
  PanelOrder o;
  o.free = axis(free);
  o.lanes = by_lanes ? form.lanes : 1;
  for (std::size_t a = 0; a < p.lhs_axis; ++a)
    if (axis(a).stride != 0 && p.extent(a) > 1) o.outer.push_back(axis(a));
  for (std::size_t a = p.rhs_axis + 1; a < p.axes.size(); ++a) o.sums.push_back(axis(a));
  const std::int64_t steps = o.num_steps();
  if (fusion.byte_steps > 0) {  // steps of the problem are four bytes
    o.together = 4;
    if (read.words) for (auto* axes : {&o.outer, &o.sums}) for (auto& a : *axes) a.stride *= 4;
    if (read.words) o.free.stride *= 4;
    o.sums.back() = {fusion.byte_steps, o.sums.back().stride / 4};
  }
  o.pitch = panel_pitch(steps, by_lanes);
  return is_permutation(o, source->shape().num_elements()) ? std::optional(o) : std::nullopt;
}

}  // namespace hloom::kernels
