#include "passes/simplify_convolutions.h"

#include <algorithm>

#include "base/try.h"
#include "hlo/convolutions.h"
#include "hlo/rare.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

using hlo::ConvolutionAttr;
using hlo::WindowDim;

std::size_t u(std::int64_t n) { return static_cast<std::size_t>(n); }

// --- Reverses ------------------------------------------------------------------------------------------------------

Expected<Instruction*> without_reverse(Instruction& i) {
  const Instruction* kernel = i.operand(1);
  if (kernel->opcode() != Opcode::Reverse) return nullptr;
  ConvolutionAttr c = i.attr<ConvolutionAttr>();
  for (const std::int64_t d : kernel->dimensions()) {
    const auto at = std::ranges::find(c.dims.kernel_spatial, d);
    if (at == c.dims.kernel_spatial.end()) return nullptr;
    WindowDim& w = c.window[u(at - c.dims.kernel_spatial.begin())];
    w.reversal = !w.reversal;
  }
  Make make(i);
  Instruction* result = make.op(Opcode::Convolution, i.shape(), {i.operand(0), i.operand(1)->operand(0)});
  result->mutable_attr<ConvolutionAttr>() = std::move(c);
  return result;
}

// --- Base dilation -------------------------------------------------------------------------------------------------

constexpr std::int64_t kMostPhases = 16;
constexpr double kLeastProducts = 1 << 19;  // fewer are done before that pays

// One dimension for the places of the result that are `phase` modulo the dilation.
struct Phase {
  std::int64_t taps = 0, first_tap = 0;  // of the window's places those that meet elements, a dilation apart
  std::int64_t pad_low = 0, pad_high = 0;
};

// Place y of the result sees place y + k - pad_low of the dilated input at tap k: an element where the dilation divides that.
Phase phase_of(const WindowDim& w, std::int64_t phase, std::int64_t input, std::int64_t results) {
  const std::int64_t s = w.lhs_dilate;
  Phase p;
  p.first_tap = ((w.pad_low - phase) % s + s) % s;
  p.taps = p.first_tap < w.size ? (w.size - p.first_tap + s - 1) / s : 0;
  p.pad_low = (w.pad_low - phase - p.first_tap) / s;
  p.pad_high = results + p.taps - 1 - input - p.pad_low;
  return p;
}

std::int64_t results_of(const Instruction& i, std::size_t s) {
  const auto& c = i.attr<ConvolutionAttr>();
  const std::int64_t dilate = c.window[s].lhs_dilate;
  return (i.shape().dim(c.dims.output_spatial[s]) + dilate - 1) / dilate;
}

Phase phase_of(const Instruction& i, std::size_t s, std::int64_t phase) {
  const auto& c = i.attr<ConvolutionAttr>();
  return phase_of(c.window[s], phase, i.operand(0)->shape().dim(c.dims.input_spatial[s]), results_of(i, s));
}

bool splits(const Instruction& i) {
  const auto& c = i.attr<ConvolutionAttr>();
  if (hlo::has_thin_groups(i) || hlo::is_rare(i)) return false;
  double products = static_cast<double>(i.shape().num_elements()) * static_cast<double>(i.operand(1)->shape().dim(c.dims.kernel_input));
  std::int64_t phases = 1;
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    const WindowDim& w = c.window[s];
    products *= static_cast<double>(w.size);
    if (w.lhs_dilate == 1) continue;
    phases *= std::min(w.lhs_dilate, kMostPhases + 1);
    if (phases > kMostPhases || w.stride != 1 || w.rhs_dilate != 1) return false;
    for (std::int64_t p = 0; p < w.lhs_dilate; ++p) {
      // What is cut off of an input is padded no more: left as it is.
      const Phase phase = phase_of(i, s, p);
      if (phase.taps > 0 && (phase.pad_low < 0 || phase.pad_high < 0)) return false;
    }
  }
  return phases > 1 && products >= kLeastProducts && i.shape().num_elements() > 0;
}

// The part of the kernel that a phase meets, which the window goes over in the same direction.
Instruction* part_of_kernel(Make& make, const Instruction& i, const std::vector<Phase>& phases) {
  const auto& c = i.attr<ConvolutionAttr>();
  Instruction* kernel = i.operand(1);
  const Dims& sizes = kernel->shape().dims();
  hlo::SliceAttr slice{Dims(sizes.size(), 0), sizes, Dims(sizes.size(), 1)};
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    const WindowDim& w = c.window[s];
    if (w.lhs_dilate == 1) continue;
    const auto d = u(c.dims.kernel_spatial[s]);
    const std::int64_t last = phases[s].first_tap + (phases[s].taps - 1) * w.lhs_dilate;
    slice.starts[d] = w.reversal ? w.size - 1 - last : phases[s].first_tap;
    slice.limits[d] = slice.starts[d] + (phases[s].taps - 1) * w.lhs_dilate + 1;
    slice.strides[d] = w.lhs_dilate;
  }
  return make.slice(kernel, std::move(slice));
}

Instruction* part_of_result(Make& make, const Instruction& i, const std::vector<Phase>& phases) {
  ConvolutionAttr c = i.attr<ConvolutionAttr>();
  Dims dims = i.shape().dims();
  bool empty = false;
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    WindowDim& w = c.window[s];
    if (w.lhs_dilate == 1) continue;
    dims[u(c.dims.output_spatial[s])] = results_of(i, s);
    empty = empty || phases[s].taps == 0;
  }
  const Shape shape = Shape::array(i.shape().dtype(), dims);
  if (empty) return make.zeros(shape);
  Instruction* result = make.op(Opcode::Convolution, shape, {i.operand(0), part_of_kernel(make, i, phases)});
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    WindowDim& w = c.window[s];
    if (w.lhs_dilate == 1) continue;
    w.size = phases[s].taps;
    w.pad_low = phases[s].pad_low;
    w.pad_high = phases[s].pad_high;
    w.lhs_dilate = 1;
  }
  result->mutable_attr<ConvolutionAttr>() = std::move(c);
  return result;
}

// The results of all phases of dimensions s and on, in turns along each.
Instruction* all_phases(Make& make, const Instruction& i, std::size_t s, std::vector<Phase>& phases) {
  const auto& c = i.attr<ConvolutionAttr>();
  if (s == c.window.size()) return part_of_result(make, i, phases);
  const std::int64_t dilate = c.window[s].lhs_dilate;
  if (dilate == 1) return all_phases(make, i, s + 1, phases);
  const std::int64_t d = c.dims.output_spatial[s];
  std::vector<Instruction*> parts;
  Dims dims;
  for (std::int64_t p = 0; p < dilate; ++p) {
    phases[s] = phase_of(i, s, p);
    Instruction* part = all_phases(make, i, s + 1, phases);
    dims = part->shape().dims();
    dims.insert(dims.begin() + d + 1, 1);
    parts.push_back(make.reshape(part, dims));
  }
  dims[u(d + 1)] = dilate;
  Instruction* stacked = make.op(Opcode::Concatenate, Shape::array(i.shape().dtype(), dims), parts);
  stacked->set_dimensions({d + 1});
  dims[u(d)] *= dilate;
  dims.erase(dims.begin() + d + 1);
  return make.reshape(stacked, dims);
}

Expected<Instruction*> without_base_dilation(Instruction& i) {
  if (!splits(i)) return nullptr;
  Make make(i);
  std::vector<Phase> phases(i.attr<ConvolutionAttr>().window.size());
  Instruction* all = all_phases(make, i, 0, phases);
  if (all->shape().dims() == i.shape().dims()) return all;
  const Dims& sizes = i.shape().dims();
  return make.slice(all, {Dims(sizes.size(), 0), sizes, Dims(sizes.size(), 1)});
}

}  // namespace

Expected<Changed> simplify_convolutions(hlo::Module& module) {
  const Changed reversed = TRY(expand(module, Opcode::Convolution, without_reverse));
  const Changed dilated = TRY(expand(module, Opcode::Convolution, without_base_dilation));
  return reversed | dilated;
}

}  // namespace hloom::passes
