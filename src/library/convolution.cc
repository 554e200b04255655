#include "library/convolution.h"

#include <cstring>

namespace hloom::library {
namespace {

using Spatial = ConvolutionProblem::Spatial;

// The descriptor is this, then a Spatial for each dimension.
struct Header {
  std::int64_t spatial, input_start, input_features, output_features;
  std::int64_t batch_input_stride, batch_result_stride, feature_input_stride, feature_kernel_stride, feature_out_kernel_stride,
      feature_out_result_stride, features_in_group, group_input_stride;
};

template <class T>
class Place {
 public:
  Place(const Header& h, const Spatial* dims, void* const* buffers, std::int64_t number)
      : h_(h), dims_(dims), input_(static_cast<const T*>(buffers[1]) + h.input_start), kernel_(static_cast<const T*>(buffers[2])),
        result_(static_cast<T*>(buffers[3])), number_(number) {
    std::int64_t rest = number;
    for (std::int64_t s = h.spatial; s-- > 0;) {
      result_ += rest % dims[s].result_size * dims[s].result_stride;
      rest /= dims[s].result_size;
    }
    input_ += rest * h.batch_input_stride;
    result_ += rest * h.batch_result_stride;
  }

  void sum_all() {
    for (std::int64_t o = 0; o < h_.output_features; ++o) {
      const T* input = input_ + o / h_.features_in_group * h_.group_input_stride;
      result_[o * h_.feature_out_result_stride] = sum(T{0}, 0, input, kernel_ + o * h_.feature_out_kernel_stride);
    }
  }

 private:
  // Adds the products of window dimensions from `s` on to `so_far`.
  T sum(T so_far, std::int64_t s, const T* input, const T* kernel) const {
    if (s == h_.spatial) {
      for (std::int64_t i = 0; i < h_.input_features; ++i)
        so_far += input[i * h_.feature_input_stride] * kernel[i * h_.feature_kernel_stride];
      return so_far;
    }
    const Spatial& d = dims_[s];
    for (std::int64_t k = 0; k < d.size; ++k) {
      const std::int64_t at = position(s) * d.stride - d.pad_low + k * d.kernel_dilation;
      if (at < 0 || at % d.input_dilation != 0 || at / d.input_dilation >= d.input_size) continue;
      const std::int64_t place = d.reversed ? d.size - 1 - k : k;
      so_far = sum(so_far, s + 1, input + at / d.input_dilation * d.input_stride, kernel + place * d.kernel_stride);
    }
    return so_far;
  }

  std::int64_t position(std::int64_t s) const {
    std::int64_t rest = number_;
    for (std::int64_t d = h_.spatial - 1; d > s; --d) rest /= dims_[d].result_size;
    return rest % dims_[s].result_size;
  }

  const Header& h_;
  const Spatial* dims_;
  const T* input_;
  const T* kernel_;
  T* result_;
  std::int64_t number_;
};

// Buffers: descriptor, input, kernel, result.
template <class T>
void convolve(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  const auto* header = static_cast<const Header*>(buffers[0]);
  const auto* dims = reinterpret_cast<const Spatial*>(header + 1);
  for (std::int64_t place = begin; place < end; ++place) Place<T>(*header, dims, buffers, place).sum_all();
}

}  // namespace

RoutinePlan plan_convolution(const ConvolutionProblem& p) {
  const Header header{std::ssize(p.spatial), p.input_start, p.input_features,         p.output_features,
                      p.batch_input_stride,      p.batch_result_stride,    p.feature_input_stride,
                      p.feature_kernel_stride,   p.feature_out_kernel_stride, p.feature_out_result_stride,
                      p.features_in_group,       p.group_input_stride};
  std::vector<std::byte> bytes(sizeof(Header) + p.spatial.size() * sizeof(Spatial));
  std::memcpy(bytes.data(), &header, sizeof(Header));
  std::int64_t places = p.batch, products = p.input_features * p.output_features;
  for (std::size_t s = 0; s < p.spatial.size(); ++s) {
    std::memcpy(&bytes[sizeof(Header) + s * sizeof(Spatial)], &p.spatial[s], sizeof(Spatial));
    places *= p.spatial[s].result_size;
    products *= p.spatial[s].size;
  }
  using Kind = Argument::Kind;
  Routine routine;
  routine.function = p.is_double ? convolve<double> : convolve<float>;
  routine.arguments = {{Kind::Descriptor, 0}, {Kind::Operand, 0}, {Kind::Operand, 1}, {Kind::Result, 0}};
  routine.descriptor = base::AlignedBytes(bytes);
  routine.blocks = places;
  routine.block_cost = 4 * products;
  RoutinePlan plan;
  plan.calls.push_back(std::move(routine));
  return plan;
}

}  // namespace hloom::library
