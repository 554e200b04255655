// Batch normalization (hlo-ops 8.7): statistics of each feature over all other dimensions, in the wide type.

#include <cmath>

#include "base/try.h"
#include "interp/element.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::BatchNormAttr;
using hlo::Literal;

template <typename W>
using Numbers = std::vector<W>;

// Calls f(i, feature) for each element i.
template <typename F>
void for_each_element(const Dims& dims, std::int64_t feature_dim, const F& f) {
  Strided feature{0, Dims(dims.size(), 0)};
  feature.strides[static_cast<std::size_t>(feature_dim)] = 1;
  walk<2>(dims, {Strided{0, row_major(dims)}, feature}, [&](const std::array<std::int64_t, 2>& at) {
    f(static_cast<std::size_t>(at[0]), static_cast<std::size_t>(at[1]));
  });
}

template <typename W>
struct Moments {
  Numbers<W> mean, variance;
};

template <typename W>
Moments<W> moments(const Numbers<W>& x, const Dims& dims, std::int64_t feature_dim) {
  const auto features = static_cast<std::size_t>(dims[static_cast<std::size_t>(feature_dim)]);
  const W n = static_cast<W>(x.size()) / static_cast<W>(features);
  Moments<W> m{Numbers<W>(features), Numbers<W>(features)};
  for_each_element(dims, feature_dim, [&](std::size_t i, std::size_t f) { m.mean[f] += x[i]; });
  for (W& mean : m.mean) mean /= n;
  for_each_element(dims, feature_dim,
                   [&](std::size_t i, std::size_t f) { m.variance[f] += (x[i] - m.mean[f]) * (x[i] - m.mean[f]); });
  for (W& variance : m.variance) variance /= n;
  return m;
}

// Epsilon is an f32, whatever the element type.
template <typename W>
W epsilon(const Call& call) {
  return static_cast<W>(static_cast<float>(call.instruction.attr<BatchNormAttr>().epsilon));
}

// scale · (x - mean) / sqrt(variance + epsilon) + offset
template <typename W>
Numbers<W> normalized(const Call& call, const Numbers<W>& x, const Moments<W>& m) {
  const auto& attr = call.instruction.attr<BatchNormAttr>();
  const Numbers<W> scale = widen<W>(call.array(1)), offset = widen<W>(call.array(2));
  Numbers<W> y(x.size());
  for_each_element(call.dims(0), attr.feature_index, [&](std::size_t i, std::size_t f) {
    y[i] = scale[f] * (x[i] - m.mean[f]) / std::sqrt(m.variance[f] + epsilon<W>(call)) + offset[f];
  });
  return y;
}

template <typename F>
auto with_real(DType type, const F& f) {
  if (type == DType::F64) return f(0.0L);
  return f(0.0);
}

template <typename W>
Value three(const Call& call, const Numbers<W>& a, const Numbers<W>& b, const Numbers<W>& c) {
  std::vector<Literal> results;
  results.push_back(rounded(call.shape.element(0), a));
  results.push_back(rounded(call.shape.element(1), b));
  results.push_back(rounded(call.shape.element(2), c));
  return tuple_unless_one(std::move(results));
}

}  // namespace

Expected<Value> batch_norm_training(const Call& call) {
  return with_real(call.array(0).dtype(), [&]<typename W>(W) {
    const Numbers<W> x = widen<W>(call.array(0));
    const Moments<W> m = moments(x, call.dims(0), call.instruction.attr<BatchNormAttr>().feature_index);
    return Expected<Value>(three(call, normalized(call, x, m), m.mean, m.variance));
  });
}

Expected<Value> batch_norm_inference(const Call& call) {
  return with_real(call.array(0).dtype(), [&]<typename W>(W) {
    const Moments<W> m{widen<W>(call.array(3)), widen<W>(call.array(4))};
    return Expected<Value>(Value(rounded(call.shape, normalized(call, widen<W>(call.array(0)), m))));
  });
}

// x̂ = (x - mean) / sqrt(variance + ε); doffset = Σ dy; dscale = Σ dy·x̂;
// dx = scale / sqrt(variance + ε) · (dy - doffset/n - x̂·dscale/n)
Expected<Value> batch_norm_grad(const Call& call) {
  return with_real(call.array(0).dtype(), [&]<typename W>(W) {
    const auto& attr = call.instruction.attr<BatchNormAttr>();
    const Dims& dims = call.dims(0);
    const Numbers<W> x = widen<W>(call.array(0)), scale = widen<W>(call.array(1)), mean = widen<W>(call.array(2)),
                     variance = widen<W>(call.array(3)), dy = widen<W>(call.array(4));
    const W n = static_cast<W>(x.size()) / static_cast<W>(scale.size());
    Numbers<W> root(scale.size()), dscale(scale.size()), doffset(scale.size()), hat(x.size()), dx(x.size());
    for (std::size_t f = 0; f < root.size(); ++f) root[f] = std::sqrt(variance[f] + epsilon<W>(call));
    for_each_element(dims, attr.feature_index, [&](std::size_t i, std::size_t f) {
      hat[i] = (x[i] - mean[f]) / root[f];
      dscale[f] += dy[i] * hat[i];
      doffset[f] += dy[i];
    });
    for_each_element(dims, attr.feature_index, [&](std::size_t i, std::size_t f) {
      dx[i] = scale[f] / root[f] * (dy[i] - doffset[f] / n - hat[i] * dscale[f] / n);
    });
    return Expected<Value>(three(call, dx, dscale, doffset));
  });
}

}  // namespace hloom::interp
