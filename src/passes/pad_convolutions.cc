#include "passes/pad_convolutions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "hlo/convolutions.h"
#include "hlo/rare.h"
#include "hlo/staged.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

using hlo::ConvolutionAttr;
using hlo::WindowDim;

constexpr double kLeastProducts = 1 << 19;  // fewer are done before the kernel was looked at

bool is_padded(const WindowDim& w) { return w.pad_low != 0 || w.pad_high != 0 || w.lhs_dilate != 1; }

double products_of(const Instruction& i, const ConvolutionAttr& c) {
  double products = static_cast<double>(i.shape().num_elements()) *
                    static_cast<double>(i.operand(1)->shape().dim(c.dims.kernel_input));
  for (const WindowDim& w : c.window) products *= static_cast<double>(w.size);
  return products;
}

bool is_known_float(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::BF16 || type == DType::F16;
}

// In which products are summed.
DType sum_type(const Instruction& i) { return i.shape().dtype() == DType::F64 ? DType::F64 : DType::F32; }

bool has_types(const Instruction& i) {
  if (is_integral(i.shape().dtype()))
    return std::ranges::all_of(i.operands(), [](const Instruction* o) { return is_integral(o->shape().dtype()); });
  const auto fits = [&](const Instruction* o) {
    return is_known_float(o->shape().dtype()) && bit_width(o->shape().dtype()) <= bit_width(sum_type(i));
  };
  return is_known_float(i.shape().dtype()) && std::ranges::all_of(i.operands(), fits);
}

bool wanted(const Instruction& i) {
  const auto& c = i.attr<ConvolutionAttr>();
  if ((hlo::has_thin_groups(i) && !hlo::sums_by_channel(i)) || hlo::is_rare(i) || !has_types(i)) return false;
  // What is cut off cannot be put back for the convolution as it was.
  const bool cut = std::ranges::any_of(c.window, [](const WindowDim& w) { return w.pad_low < 0 || w.pad_high < 0; });
  return !cut && std::ranges::any_of(c.window, is_padded) && products_of(i, c) >= kLeastProducts;
}

std::optional<bool> known_finite(const Instruction& kernel) {
  if (is_integral(kernel.shape().dtype())) return true;
  if (kernel.opcode() != Opcode::Constant) return std::nullopt;
  const hlo::Literal& literal = kernel.literal();
  for (std::int64_t e = 0; e < literal.num_elements(); ++e)
    if (!std::isfinite(element_as_double(literal, e))) return false;
  return true;
}

// Elements of the padded input from the first to the last line that a line of the result reads, whole lines of its innermost
// spatial dimension.
std::int64_t staged_elements(const Instruction& i) {
  const auto& c = i.attr<ConvolutionAttr>();
  const Shape& input = i.operand(0)->shape();
  const auto padded = [&](std::size_t s) { return input.dim(c.dims.input_spatial[s]) + c.window[s].pad_low + c.window[s].pad_high; };
  std::int64_t lines = 1, apart = 1;
  for (std::size_t s = c.window.size() - 1; s-- > 0; apart *= padded(s)) lines += (c.window[s].size - 1) * c.window[s].rhs_dilate * apart;
  return lines * padded(c.window.size() - 1) * input.dim(c.dims.input_feature);
}

// Whether kernels may have the padded input line by line: features lie together, the lines that one of the result reads are
// few bytes, and the convolution's kernel is read for some lines at a time as it lies.
bool goes_by_lines(const Instruction& i) {
  constexpr std::int64_t kMostBytes = 48 << 10, kMostKernelBytes = 256 << 10, kShortest = 8;
  const auto& c = i.attr<ConvolutionAttr>();
  const Shape &input = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  const auto last = static_cast<std::int64_t>(input.rank()) - 1, bytes = byte_width(sum_type(i));
  if (is_integral(i.shape().dtype()) || c.window.empty() || c.feature_groups > 1 || c.batch_groups > 1) return false;
  if (c.dims.input_feature != last || c.dims.input_spatial.back() != last - 1 || !input.layout().is_descending()) return false;
  if (c.dims.kernel_output != last || !kernel.layout().is_descending()) return false;
  if (std::ranges::any_of(c.window, [](const WindowDim& w) { return w.lhs_dilate != 1; })) return false;
  return i.shape().dim(c.dims.output_spatial.back()) >= kShortest && kernel.num_elements() * bytes <= kMostKernelBytes &&
         staged_elements(i) * bytes <= kMostBytes;
}

// `input`: i's, perhaps a parameter of a branch.
Instruction* padded_input(Make& make, Instruction* input, const Instruction& i) {
  const auto& c = i.attr<ConvolutionAttr>();
  // Of integers that are widened the narrow ones: a kernel takes bytes four at a time.
  const bool widens = input->opcode() == Opcode::Convert && is_integral(input->shape().dtype()) && is_integral(input->operand(0)->shape().dtype());
  if (widens) input = input->operand(0);
  std::vector<hlo::PadDim> dims(static_cast<std::size_t>(input->shape().rank()));
  for (std::size_t s = 0; s < c.window.size(); ++s)
    dims[static_cast<std::size_t>(c.dims.input_spatial[s])] = {c.window[s].pad_low, c.window[s].pad_high,
                                                               c.window[s].lhs_dilate - 1};
  Instruction* padded = make.pad(input, make.zeros(Shape::scalar(input->shape().dtype())), std::move(dims));
  if (goes_by_lines(i)) hlo::mark_staged(*padded);
  return widens ? make.convert(padded, i.operand(0)->shape().dtype()) : padded;
}

// The input again, from what padded_input() made.
Instruction* unpadded(Make& make, Instruction* padded, const Instruction& i) {
  const auto& c = i.attr<ConvolutionAttr>();
  const Dims& sizes = i.operand(0)->shape().dims();
  hlo::SliceAttr slice{Dims(sizes.size(), 0), sizes, Dims(sizes.size(), 1)};
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    const auto d = static_cast<std::size_t>(c.dims.input_spatial[s]);
    const WindowDim& w = c.window[s];
    slice.starts[d] = w.pad_low;
    slice.limits[d] = w.pad_low + std::max<std::int64_t>((sizes[d] - 1) * w.lhs_dilate + 1, 0);
    slice.strides[d] = w.lhs_dilate;
  }
  return make.slice(padded, std::move(slice));
}

Instruction* convolution(Make& make, DType type, Instruction* input, Instruction* kernel, const Instruction& like) {
  Instruction* result = make.op(Opcode::Convolution, Shape::array(type, like.shape().dims()), {input, kernel});
  result->mutable_attr<ConvolutionAttr>() = like.attr<ConvolutionAttr>();
  return result;
}

Instruction* whole_convolution(Make& make, Instruction* padded, Instruction* kernel, const Instruction& like) {
  Instruction* result = convolution(make, like.shape().dtype(), padded, kernel, like);
  for (WindowDim& w : result->mutable_attr<ConvolutionAttr>().window) w.pad_low = w.pad_high = 0, w.lhs_dilate = 1;
  return result;
}

// As it was, by a routine, which knows the types of sums alone.
Instruction* rare_convolution(Make& make, Instruction* input, Instruction* kernel, const Instruction& like) {
  const DType type = sum_type(like);
  Instruction* result = convolution(make, type, make.convert(input, type), make.convert(kernel, type), like);
  hlo::mark_rare(*result);
  return make.convert(result, like.shape().dtype());
}

// A branch: the convolution of what is padded, or as it was. The padded input is made before both, or by the one that reads
// it line by line.
hlo::Computation* branch(const Instruction& i, const Shape& operands, bool whole) {
  hlo::Computation* c = i.module().add_computation(i.name() + (whole ? "_finite" : "_not_finite"));
  Make make(i, *c);
  Instruction* both = c->add_parameter(0, operands);
  Instruction *input = make.element(both, 0), *kernel = make.element(both, 1);
  const bool by_lines = goes_by_lines(i);
  if (whole)
    c->set_root(whole_convolution(make, by_lines ? padded_input(make, input, i) : input, kernel, i));
  else
    c->set_root(rare_convolution(make, by_lines ? input : unpadded(make, input, i), kernel, i));
  return c;
}

Expected<Instruction*> rewritten(Instruction& i) {
  if (!wanted(i)) return nullptr;
  const std::optional<bool> finite = known_finite(*i.operand(1));
  if (finite == false) return nullptr;
  Make make(i);
  Instruction* input = finite == true || !goes_by_lines(i) ? padded_input(make, i.operand(0), i) : i.operand(0);
  Instruction* kernel = i.operand(1);
  if (finite == true) return whole_convolution(make, input, kernel, i);

  Dims all(static_cast<std::size_t>(kernel->shape().rank()));
  std::iota(all.begin(), all.end(), 0);
  Instruction* each = make.op(Opcode::IsFinite, Shape::array(DType::Pred, kernel->shape().dims()), {kernel});
  Instruction* is_finite = make.reduce(Opcode::And, each, make.integer(DType::Pred, 1), all);
  Instruction* both = make.tuple({input, kernel});
  Instruction* chosen = make.op(Opcode::Conditional, Shape::array(i.shape().dtype(), i.shape().dims()), {is_finite, both, both});
  chosen->set_called({branch(i, both->shape(), true), branch(i, both->shape(), false)});
  return chosen;
}

}  // namespace

Expected<Changed> pad_convolutions(hlo::Module& module) {
  return expand(module, Opcode::Convolution, rewritten);
}

}  // namespace hloom::passes
