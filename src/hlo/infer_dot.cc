// dot, ragged-dot, scaled-dot, convolution, hlo-ops 8.1 to 8.4.
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

Expected<> want_equal_pairs(const Instruction& i, const Dims& lhs_dims, const Dims& rhs_dims, std::string_view verb) {
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  if (lhs_dims.size() != rhs_dims.size())
    return wrong(i, verb, " ", lhs_dims.size(), " dimensions of lhs with ", rhs_dims.size(), " of rhs");
  for (std::size_t k = 0; k < lhs_dims.size(); ++k)
    if (lhs.dim(lhs_dims[k]) != rhs.dim(rhs_dims[k]))
      return wrong(i, verb, " dimension ", lhs_dims[k], " of lhs (", lhs.dim(lhs_dims[k]), ") with ", rhs_dims[k],
                   " of rhs (", rhs.dim(rhs_dims[k]), ")");
  return {};
}

// Lists in range, disjoint, of matching sizes.
Expected<> check_dot_lists(const Instruction& i) {
  TRY(want_array(i, 0));
  TRY(want_array(i, 1));
  const auto& a = i.attr<DotAttr>();
  const std::int64_t lhs_rank = i.operand(0)->shape().rank(), rhs_rank = i.operand(1)->shape().rank();
  Dims lhs = a.lhs_batch, rhs = a.rhs_batch;
  lhs.insert(lhs.end(), a.lhs_contracting.begin(), a.lhs_contracting.end());
  rhs.insert(rhs.end(), a.rhs_contracting.begin(), a.rhs_contracting.end());
  TRY(want_distinct(i, lhs, lhs_rank, "batch and contracting dimensions of lhs"));
  TRY(want_distinct(i, rhs, rhs_rank, "batch and contracting dimensions of rhs"));
  TRY(want_equal_pairs(i, a.lhs_batch, a.rhs_batch, "batches"));
  return want_equal_pairs(i, a.lhs_contracting, a.rhs_contracting, "contracts");
}

void append_dims(Shape& result, const Shape& from, const Dims& dims) {
  Dims sizes = result.dims();
  const auto before = static_cast<std::int64_t>(sizes.size());
  for (const std::int64_t d : dims) sizes.push_back(from.dim(d));
  Shape longer = Shape::array(result.dtype(), std::move(sizes));
  for (std::int64_t d = 0; d < longer.rank() && d < Shape::kMaxRank; ++d)
    longer.set_dynamic_dim(
        d, d < before ? result.is_dynamic_dim(d) : from.is_dynamic_dim(dims[static_cast<std::size_t>(d - before)]));
  result = std::move(longer);
}

Expected<Shape> want_rank(const Instruction& i, Shape result) {
  if (result.rank() > Shape::kMaxRank) return wrong(i, "result has more than ", Shape::kMaxRank, " dimensions");
  return result;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// Batch dimensions, free dimensions of lhs, free dimensions of rhs.
Expected<Shape> infer_plain_dot(const Instruction& i) {
  TRY(check_dot_lists(i));
  const auto& a = i.attr<DotAttr>();
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  const DType type = TRY(product_type(i, lhs.dtype(), rhs.dtype()));
  Shape result = Shape::scalar(type);
  append_dims(result, lhs, a.lhs_batch);
  append_dims(result, lhs, remaining_dims(lhs, joined(a.lhs_batch, a.lhs_contracting)));
  append_dims(result, rhs, remaining_dims(rhs, joined(a.rhs_batch, a.rhs_contracting)));
  return want_rank(i, std::move(result));
}

// Sizes are [g], or carry dimensions of lhs before it.
Expected<std::int64_t> number_of_groups(const Instruction& i) {
  TRY(want_array(i, 2));
  const Shape& sizes = i.operand(2)->shape();
  if (!is_integral(sizes.dtype()) || sizes.rank() < 1)
    return wrong(i, "group sizes must be integers of rank 1 or more, found ", sizes);
  return sizes.dim(sizes.rank() - 1);
}

Expected<Shape> infer_ragged_dot(const Instruction& i) {
  TRY(check_dot_lists(i));
  const auto& a = i.attr<DotAttr>();
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  if (a.lhs_ragged.size() != 1) return wrong(i, "lhs_ragged_dims must name one, found ", a.lhs_ragged.size());
  TRY(want_distinct(i, a.lhs_ragged, lhs.rank(), "lhs_ragged_dims"));
  TRY(want_distinct(i, joined(joined(a.rhs_batch, a.rhs_contracting), a.rhs_group), rhs.rank(),
                    "batch, contracting and group dimensions of rhs"));
  const std::int64_t groups = TRY(number_of_groups(i));
  const std::int64_t ragged = a.lhs_ragged.front();
  const bool is_contracting = contains(a.lhs_contracting, ragged), is_batch = contains(a.lhs_batch, ragged);
  const std::size_t expected_groups = is_contracting || is_batch ? 0 : 1;
  if (a.rhs_group.size() != expected_groups)
    return wrong(i, "rhs_group_dims must name ", expected_groups, " here, found ", a.rhs_group.size());
  if (expected_groups == 1 && rhs.dim(a.rhs_group.front()) != groups)
    return wrong(i, "group dimension of rhs (", rhs.dim(a.rhs_group.front()), ") must be the number of groups (",
                 groups, ")");
  const DType type = TRY(product_type(i, lhs.dtype(), rhs.dtype()));
  Shape result = is_contracting ? Shape::array(type, {groups}) : Shape::scalar(type);
  append_dims(result, lhs, a.lhs_batch);
  append_dims(result, lhs, remaining_dims(lhs, joined(a.lhs_batch, a.lhs_contracting)));
  append_dims(result, rhs, remaining_dims(rhs, joined(joined(a.rhs_batch, a.rhs_contracting), a.rhs_group)));
  return want_rank(i, std::move(result));
}

// A scale's dimensions divide its operand's. All ones with one element: not scaled.
Expected<> check_scale(const Instruction& i, std::int64_t operand, std::int64_t scale) {
  TRY(want_array(i, scale));
  const Shape &x = i.operand(operand)->shape(), &s = i.operand(scale)->shape();
  if (s.is_scalar()) return {};
  if (s.rank() != x.rank()) return wrong(i, "scale ", s, " must have the rank of ", x);
  for (std::int64_t d = 0; d < x.rank(); ++d)
    if (s.dim(d) < 1 ? x.dim(d) != s.dim(d) : x.dim(d) % s.dim(d) != 0)
      return wrong(i, "dimension ", d, " of ", x, " must be a multiple of the scale's (", s.dim(d), ")");
  return {};
}

Expected<Shape> infer_scaled_dot(const Instruction& i) {
  const Shape result = TRY(infer_plain_dot(i));
  const auto& a = i.attr<DotAttr>();
  if (a.lhs_contracting.size() != 1)
    return wrong(i, "scaled-dot contracts one dimension, found ", a.lhs_contracting.size());
  TRY(check_scale(i, 0, 2));
  TRY(check_scale(i, 1, 3));
  return result;
}

// --- convolution

// The places named for one array are its dimensions, each once.
Expected<> check_places(const Instruction& i, std::string_view what, const Shape& s, std::int64_t a, std::int64_t b,
                        const Dims& spatial, const Dims& unused, std::size_t windows) {
  Dims all = joined(spatial, unused);
  all.push_back(a);
  all.push_back(b);
  TRY(want_distinct(i, all, s.rank(), what));
  if (static_cast<std::int64_t>(all.size()) != s.rank())
    return wrong(i, what, " names ", all.size(), " dimensions of ", s);
  if (spatial.size() != windows)
    return wrong(i, what, " names ", spatial.size(), " spatial dimensions, the window has ", windows);
  for (const std::int64_t d : unused)
    if (s.dim(d) != 1) return wrong(i, what, " leaves out dimension ", d, " of size ", s.dim(d));
  return {};
}

Expected<> check_groups(const Instruction& i, std::int64_t batch, std::int64_t features, std::int64_t in,
                        std::int64_t out) {
  const auto& a = i.attr<ConvolutionAttr>();
  const std::int64_t g = a.feature_groups, h = a.batch_groups;
  if (g < 1 || h < 1) return wrong(i, "group counts ", g, " and ", h, " must be at least 1");
  if (g > 1 && h > 1)
    return wrong(i, "feature_group_count ", g, " and batch_group_count ", h, " may not both exceed 1");
  if (in < 0 || features < 0 || static_cast<__int128>(in) * g != features)
    return wrong(i, "kernel input features (", in, ") times feature_group_count (", g, ") must be input features (",
                 features, ")");
  if (out % g != 0 || out % h != 0)
    return wrong(i, "output features (", out, ") must be a multiple of the group counts ", g, " and ", h);
  if (batch % h != 0) return wrong(i, "batch (", batch, ") must be a multiple of batch_group_count ", h);
  return {};
}

}  // namespace

Expected<Shape> infer_convolution(const Instruction& i) {
  if (i.num_operands() < 2) return wrong(i, "convolution takes input and kernel, found ", i.num_operands());
  TRY(want_arrays(i));
  const auto& a = i.attr<ConvolutionAttr>();
  const ConvolutionDims& p = a.dims;
  const Shape &input = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  const std::size_t n = a.window.size();
  TRY(check_places(i, "dim_labels of the input", input, p.input_batch, p.input_feature, p.input_spatial, p.input_unused,
                   n));
  TRY(check_places(i, "dim_labels of the kernel", kernel, p.kernel_input, p.kernel_output, p.kernel_spatial,
                   p.kernel_unused, n));
  const std::int64_t batch = input.dim(p.input_batch), out = kernel.dim(p.kernel_output);
  TRY(check_groups(i, batch, input.dim(p.input_feature), kernel.dim(p.kernel_input), out));
  Dims spatial;
  for (std::size_t k = 0; k < n; ++k) {
    spatial.push_back(input.dim(p.input_spatial[k]));
    if (kernel.dim(p.kernel_spatial[k]) != a.window[k].size)
      return wrong(i, "window dimension ", k, " (", a.window[k].size, ") must be the kernel's (",
                   kernel.dim(p.kernel_spatial[k]), ")");
  }
  const Dims sizes = TRY(windowed_dims(i, spatial, a.window));
  const DType type = TRY(product_type(i, input.dtype(), kernel.dtype()));
  Shape result = Shape::array(type, Dims(n + 2 + p.output_unused.size(), 1));
  TRY(check_places(i, "dim_labels of the output", result, p.output_batch, p.output_feature, p.output_spatial,
                   p.output_unused, n));
  result.set_dim(p.output_batch, batch < 0 ? batch : batch / a.batch_groups);
  result.set_dim(p.output_feature, out);
  for (std::size_t k = 0; k < n; ++k) {
    result.set_dim(p.output_spatial[k], sizes[k]);
    result.set_dynamic_dim(p.output_spatial[k], input.is_dynamic_dim(p.input_spatial[k]));
  }
  result.set_dynamic_dim(p.output_batch, input.is_dynamic_dim(p.input_batch));
  result.set_dynamic_dim(p.output_feature, kernel.is_dynamic_dim(p.kernel_output));
  return result;
}

Expected<Shape> infer_dot(const Instruction& i) {
  if (i.opcode() == Opcode::RaggedDot) return infer_ragged_dot(i);
  if (i.opcode() == Opcode::ScaledDot) return infer_scaled_dot(i);
  if (i.num_operands() < 2) return wrong(i, "dot takes two operands, found ", i.num_operands());
  return infer_plain_dot(i);
}

}  // namespace hloom::hlo
