// Products of arrays.
#include <algorithm>
#include <array>

#include "generate/scope.h"

namespace hloom::generate {
namespace {

bool multiplies(const Instruction& i) {
  const DType t = i.shape().dtype();
  return t != DType::Pred && bit_width(t) >= 8;
}

Dims shuffled(Scope& s, const Dims& dims) {
  Dims result = dims;
  if (s.random().chance(50)) s.random().shuffle(result);
  return result;
}

// The type that products are written in: wider than the operands' now and then.
DType product_type(Scope& s, DType type) {
  if (type == DType::S8 || type == DType::U8) return s.random().chance(70) ? DType::S32 : type;
  if (type == DType::BF16 || type == DType::F16) return s.random().chance(50) ? DType::F32 : type;
  return type;
}

struct DotSides {
  hlo::DotAttr attr;
  Dims rhs;
  double terms = 1;
};

// Which dimensions of the left side are batches, which are summed over; the right side's dimensions in any order.
DotSides draw_sides(Scope& s, const Shape& lhs) {
  struct Side {
    std::int64_t size, of_lhs;
    bool batch;
  };
  DotSides d;
  std::vector<Side> shared;
  Dims order = iota(lhs.rank());
  s.random().shuffle(order);
  const std::int64_t contracting =
      std::min<std::int64_t>(lhs.rank(), s.random().chance(80) ? 1 : s.random().pick(0, 2));
  const std::int64_t batches =
      s.random().chance(60) ? 0 : std::min<std::int64_t>(lhs.rank() - contracting, s.random().pick(0, 2));
  for (std::int64_t n = 0; n < contracting + batches; ++n) {
    const std::int64_t dim = order[static_cast<std::size_t>(n)];
    shared.push_back({lhs.dim(dim), dim, n >= contracting});
    if (n < contracting) d.terms *= static_cast<double>(lhs.dim(dim));
  }
  const std::int64_t free = s.random().pick(0, 2);
  for (std::int64_t n = 0; n < free; ++n) shared.push_back({s.dims(1)[0], -1, false});
  std::vector<std::int64_t> places = iota(static_cast<std::int64_t>(shared.size()));
  s.random().shuffle(places);
  if (batches > 0 && s.random().chance(50))
    std::ranges::sort(places, {}, [&](std::int64_t p) { return !shared[static_cast<std::size_t>(p)].batch; });
  for (std::size_t at = 0; at < places.size(); ++at) {
    const Side& side = shared[static_cast<std::size_t>(places[at])];
    d.rhs.push_back(side.size);
    if (side.of_lhs < 0) continue;
    (side.batch ? d.attr.lhs_batch : d.attr.lhs_contracting).push_back(side.of_lhs);
    (side.batch ? d.attr.rhs_batch : d.attr.rhs_contracting).push_back(static_cast<std::int64_t>(at));
  }
  return d;
}

bool draw_dot(Scope& s) {
  Instruction* lhs = s.pick([](const Instruction& i) { return multiplies(i) && i.shape().rank() > 0; });
  if (lhs == nullptr) return false;
  const DotSides d = draw_sides(s, lhs->shape());
  const DType type = lhs->shape().dtype();
  if (count(d.rhs) > s.draw().max_elements) return false;
  const double work =
      static_cast<double>(count(lhs->shape().dims())) * static_cast<double>(count(d.rhs)) / std::max(1.0, d.terms);
  if (work > 60.0 * static_cast<double>(s.draw().max_elements)) return false;
  lhs = s.tame(lhs, d.terms, 3);
  if (lhs == nullptr) return false;
  const double factor = s.bound(lhs);
  Instruction* rhs = s.tame(s.make(type, d.rhs), d.terms, factor);
  if (rhs == nullptr) return false;
  const DType result = product_type(s, type);
  Instruction* r = s.add(
      Opcode::Dot, {lhs, rhs}, [&](Instruction& i) { i.mutable_attr<hlo::DotAttr>() = d.attr; },
      Shape::array(result, {}));
  const double complex = is_complex(type) ? 2 : 1;
  return s.keep(r, complex * d.terms * s.bound(lhs) * s.bound(rhs)) != nullptr;
}

struct Filter {
  Dims input, kernel;
  hlo::ConvolutionAttr attr;
  double terms = 1;
};

// Labels in any order, groups, strides, padding, dilation and reversal.
Filter draw_filter(Scope& s) {
  Filter f;
  const std::int64_t spatial = s.random().of({1, 2, 2, 3});
  const std::int64_t groups = s.random().chance(70) ? 1 : s.random().pick(2, 3);
  const bool batch_groups = groups > 1 && s.random().chance(30);
  const std::int64_t features = s.random().pick(1, 5), outputs = s.random().pick(1, 5) * groups;
  const std::int64_t batch = s.random().pick(1, 3) * (batch_groups ? groups : 1);
  const Dims of_input = shuffled(s, iota(spatial + 2)), of_kernel = shuffled(s, iota(spatial + 2)),
             of_output = shuffled(s, iota(spatial + 2));
  f.input.resize(static_cast<std::size_t>(spatial + 2));
  f.kernel = f.input;
  auto& dims = f.attr.dims;
  const auto put = [](Dims& to, std::int64_t at, std::int64_t size) { to[static_cast<std::size_t>(at)] = size; };
  dims.input_batch = of_input[0], dims.input_feature = of_input[1];
  dims.kernel_input = of_kernel[0], dims.kernel_output = of_kernel[1];
  dims.output_batch = of_output[0], dims.output_feature = of_output[1];
  put(f.input, of_input[0], batch);
  put(f.input, of_input[1], batch_groups ? features : features * groups);
  put(f.kernel, of_kernel[0], features);
  put(f.kernel, of_kernel[1], outputs);
  f.terms = static_cast<double>(features);
  for (std::int64_t d = 0; d < spatial; ++d) {
    const auto at = static_cast<std::size_t>(d + 2);
    hlo::WindowDim w;
    w.size = s.random().pick(1, 4);
    if (s.random().chance(30)) w.stride = s.random().pick(2, 3);
    if (s.random().chance(50)) w.pad_low = s.random().pick(-1, w.size), w.pad_high = s.random().pick(-1, w.size);
    if (s.random().chance(15)) w.lhs_dilate = s.random().pick(2, 3);
    if (s.random().chance(15)) w.rhs_dilate = s.random().pick(2, 3);
    w.reversal = s.random().chance(10);
    f.terms *= static_cast<double>(w.size);
    dims.input_spatial.push_back(of_input[at]);
    dims.kernel_spatial.push_back(of_kernel[at]);
    dims.output_spatial.push_back(of_output[at]);
    put(f.input, of_input[at], s.random().pick(1, spatial == 3 ? 5 : 11));
    put(f.kernel, of_kernel[at], w.size);
    f.attr.window.push_back(w);
  }
  (batch_groups ? f.attr.batch_groups : f.attr.feature_groups) = groups;
  return f;
}

bool draw_convolution(Scope& s) {
  const Filter f = draw_filter(s);
  const DType type = s.float_type();
  Instruction* input = s.tame(s.make(type, f.input), f.terms, 3);
  if (input == nullptr) return false;
  Instruction* kernel = s.tame(s.make(type, f.kernel), f.terms, s.bound(input));
  if (kernel == nullptr) return false;
  Instruction* r = s.add(
      Opcode::Convolution, {input, kernel}, [&](Instruction& i) { i.mutable_attr<hlo::ConvolutionAttr>() = f.attr; },
      Shape::array(type, {}));
  return s.keep(r, f.terms * s.bound(input) * s.bound(kernel)) != nullptr;
}

constexpr std::array kFamilies = {Family{70, draw_dot}, Family{30, draw_convolution}};

}  // namespace

std::span<const Family> contraction_families() { return kFamilies; }

}  // namespace hloom::generate
