#include "kernels/taps.h"

#include <algorithm>

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr std::int64_t kMostTaps = 50;       // of one element
constexpr std::int64_t kLeastWork = 1 << 12;  // taps of all elements

std::int64_t window_taps(const hlo::Window& window) {
  std::int64_t taps = 1;
  for (const hlo::WindowDim& w : window) taps = std::min(taps * w.size, kMostTaps + 1);
  return taps;
}

// Statements that a tap takes.
std::int64_t tap_length(const Instruction& i) {
  if (i.opcode() == Opcode::Convolution) return i.operand(1)->shape().dim(i.attr<hlo::ConvolutionAttr>().dims.kernel_input);
  return std::max<std::int64_t>(1, std::ssize(i.to_apply()->instructions()) - 2 * (i.num_operands() / 2));
}

const hlo::Window* window_of(const Instruction& i) {
  if (i.opcode() == Opcode::Convolution) return &i.attr<hlo::ConvolutionAttr>().window;
  return i.opcode() == Opcode::ReduceWindow ? &i.attr<hlo::WindowAttr>().window : nullptr;
}

const Shape& first_shape(const Instruction& i) { return i.shape().is_tuple() ? i.shape().element(0) : i.shape(); }

}  // namespace

bool goes_by_taps(const Instruction& i) {
  const hlo::Window* window = window_of(i);
  if (window == nullptr) return false;
  const std::int64_t taps = window_taps(*window) * tap_length(i);
  return taps > 1 && taps <= kMostTaps && first_shape(i).num_elements() >= kLeastWork / taps;
}

const Instruction* find_taps(const hlo::Computation& computation, const hlo::Dims& dims) {
  for (const Instruction& i : computation.instructions())
    if (goes_by_taps(i) && first_shape(i).dims() == dims) return &i;
  return nullptr;
}

bool shares_taps(const Instruction& i, std::int64_t dimension) {
  const auto overlaps = [](const hlo::WindowDim& w) { return w.size * w.rhs_dilate > w.stride; };
  if (i.opcode() == Opcode::ReduceWindow) return overlaps(i.attr<hlo::WindowAttr>().window[static_cast<std::size_t>(dimension)]);
  const auto& c = i.attr<hlo::ConvolutionAttr>();
  const auto at = std::ranges::find(c.dims.output_spatial, dimension);
  return at != c.dims.output_spatial.end() && overlaps(c.window[static_cast<std::size_t>(at - c.dims.output_spatial.begin())]);
}

}  // namespace hloom::kernels
