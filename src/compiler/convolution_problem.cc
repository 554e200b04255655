#include "compiler/convolution_problem.h"

#include "hlo/convolutions.h"
#include "hlo/rare.h"
#include "kernels/builder.h"

namespace hloom::compiler {
bool is_rare_convolution(const hlo::Instruction& i) {
  return i.opcode() == hlo::Opcode::Convolution && hlo::is_rare(i);
}

library::ConvolutionProblem convolution_problem(const hlo::Instruction& i) {
  const auto& c = i.attr<hlo::ConvolutionAttr>();
  const Shape &input = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  const bool sliced = i.operand(0)->opcode() == hlo::Opcode::Slice;
  std::vector<std::int64_t> from = kernels::strides_of(sliced ? i.operand(0)->operand(0)->shape() : input);
  const std::vector<std::int64_t> by = kernels::strides_of(kernel), to = kernels::strides_of(i.shape());
  const auto u = [](std::int64_t d) { return static_cast<std::size_t>(d); };
  library::ConvolutionProblem p;
  p.is_double = i.shape().dtype() == DType::F64;
  if (sliced) {
    const auto& slice = i.operand(0)->attr<hlo::SliceAttr>();
    for (std::size_t d = 0; d < from.size(); ++d) {
      p.input_start += slice.starts[d] * from[d];
      from[d] *= slice.strides[d];
    }
  }
  p.batch = i.shape().dim(c.dims.output_batch);
  p.input_features = kernel.dim(c.dims.kernel_input);
  p.output_features = kernel.dim(c.dims.kernel_output);
  p.batch_input_stride = from[u(c.dims.input_batch)];
  p.batch_result_stride = to[u(c.dims.output_batch)];
  p.feature_input_stride = from[u(c.dims.input_feature)];
  p.feature_kernel_stride = by[u(c.dims.kernel_input)];
  p.feature_out_kernel_stride = by[u(c.dims.kernel_output)];
  p.feature_out_result_stride = to[u(c.dims.output_feature)];
  p.features_in_group = hlo::features_in_group(i);
  if (c.feature_groups > 1) p.group_input_stride = p.input_features * p.feature_input_stride;
  if (c.batch_groups > 1) p.group_input_stride = p.batch * p.batch_input_stride;
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    const hlo::WindowDim& w = c.window[s];
    const std::int64_t in = c.dims.input_spatial[s], out = c.dims.output_spatial[s], at = c.dims.kernel_spatial[s];
    p.spatial.push_back({w.size, w.stride, w.pad_low, w.lhs_dilate, w.rhs_dilate, w.reversal, input.dim(in), i.shape().dim(out),
                         from[u(in)], by[u(at)], to[u(out)]});
  }
  return p;
}

}  // namespace hloom::compiler
