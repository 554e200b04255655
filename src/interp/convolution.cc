// Convolution (hlo-ops 8.4), all forms by one loop:
//   out[n, o, y…] = Σ over kernel place k… and i in [0, I) of input[n', f', p…] · kernel[i, o, k'…]
// Input and kernel are first brought into the orders batch, spatial…, feature and spatial…, in, out, so that the
// innermost loop runs over the output features of a group.

#include "base/try.h"
#include "interp/contraction.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::ConvolutionAttr;
using hlo::Literal;
using hlo::Window;

std::int64_t at(const Dims& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; }

struct Sizes {
  std::int64_t in_features, kernel_in, out_features, batch_out;
  std::int64_t feature_groups, batch_groups;
  Dims in, kernel, out;  // spatial
};

template <typename W>
class Convolver {
 public:
  Convolver(const Sizes& sizes, const Window& window, const std::vector<W>& input, const std::vector<W>& kernel,
            std::vector<W>& out)
      : s_(sizes),
        window_(window),
        input_(input),
        kernel_(kernel),
        out_(out),
        in_strides_(row_major(sizes.in)),
        kernel_strides_(row_major(sizes.kernel)) {}

  void run() {
    const std::int64_t places = product(s_.out), batch_in = product(s_.in);
    for (std::int64_t n = 0; n < s_.batch_out; ++n) {
      Dims place(s_.out.size(), 0);
      for (std::int64_t y = 0; y < places; ++y, next(place, s_.out)) {
        batch_stride_ = batch_in;
        descend(n, place, 0, 0, 0, out_.data() + (n * places + y) * s_.out_features);
      }
    }
  }

 private:
  // One spatial dimension after the other: `from` and `tap` are the places in input and kernel so far.
  void descend(std::int64_t n, const Dims& place, std::size_t d, std::int64_t from, std::int64_t tap, W* out) {
    if (d == place.size()) return add_features(n, from, tap, out);
    const hlo::WindowDim& w = window_[d];
    for (std::int64_t k = 0; k < w.size; ++k) {
      const std::int64_t p = place[d] * w.stride - w.pad_low + k * w.rhs_dilate;
      if (p < 0 || p % w.lhs_dilate != 0 || p / w.lhs_dilate >= s_.in[d]) continue;
      const std::int64_t kernel_place = w.reversal ? w.size - 1 - k : k;
      descend(n, place, d + 1, from + p / w.lhs_dilate * in_strides_[d], tap + kernel_place * kernel_strides_[d], out);
    }
  }
  void add_features(std::int64_t n, std::int64_t from, std::int64_t tap, W* out) {
    const std::int64_t groups = s_.feature_groups * s_.batch_groups, per_group = s_.out_features / groups;
    for (std::int64_t g = 0; g < groups; ++g) {
      // One of the two kinds of groups is 1: output features of group g read its input features, or its batches.
      const std::int64_t batch = n + (s_.batch_groups > 1 ? g * s_.batch_out : 0);
      const std::int64_t first = s_.feature_groups > 1 ? g * s_.kernel_in : 0;
      const W* x = input_.data() + (batch * batch_stride_ + from) * s_.in_features + first;
      for (std::int64_t i = 0; i < s_.kernel_in; ++i) {
        const W* w = kernel_.data() + (tap * s_.kernel_in + i) * s_.out_features + g * per_group;
        for (std::int64_t o = 0; o < per_group; ++o) out[g * per_group + o] += times(x[i], w[o]);
      }
    }
  }

  const Sizes& s_;
  const Window& window_;
  const std::vector<W>&input_, &kernel_;
  std::vector<W>& out_;
  Dims in_strides_, kernel_strides_;
  std::int64_t batch_stride_ = 0;
};

Dims spatial(const Dims& dims, const Dims& which) {
  Dims result;
  for (const std::int64_t d : which) result.push_back(at(dims, d));
  return result;
}

Dims order(std::int64_t first, const Dims& middle, std::int64_t last) {
  Dims result{first};
  result.insert(result.end(), middle.begin(), middle.end());
  result.push_back(last);
  return result;
}

}  // namespace

Expected<Value> convolution(const Call& call) {
  const auto& attr = call.instruction.attr<ConvolutionAttr>();
  const auto& d = attr.dims;
  const bool unusual = call.num_operands() != 2 || !d.input_unused.empty() || !d.kernel_unused.empty() ||
                       !d.output_unused.empty() || !attr.sparsity_config.empty() || !attr.block_scaling_config.empty();
  if (unusual)
    return fail(Code::Unimplemented, call.instruction.name(),
                ": the interpreter runs convolutions of two dense operands without unused dimensions");
  const Sizes sizes{at(call.dims(0), d.input_feature),
                    at(call.dims(1), d.kernel_input),
                    at(call.dims(1), d.kernel_output),
                    at(call.shape.dims(), d.output_batch),
                    attr.feature_groups,
                    attr.batch_groups,
                    spatial(call.dims(0), d.input_spatial),
                    spatial(call.dims(1), d.kernel_spatial),
                    spatial(call.shape.dims(), d.output_spatial)};
  Dims kernel_order = d.kernel_spatial;
  kernel_order.push_back(d.kernel_input);
  kernel_order.push_back(d.kernel_output);
  const Dims out_order = order(d.output_batch, d.output_spatial, d.output_feature);
  return with_wide(call.shape.dtype(), [&]<typename W>(W) {
    const auto input = transposed<W>(call.array(0), order(d.input_batch, d.input_spatial, d.input_feature));
    const auto kernel = transposed<W>(call.array(1), kernel_order);
    std::vector<W> sums(static_cast<std::size_t>(product(call.shape.dims())));
    Convolver<W>(sizes, attr.window, input, kernel, sums).run();
    // From the order of out_order to that of the result.
    const Dims strides = row_major(call.shape.dims());
    Dims out_sizes;
    Strided to;
    for (const std::int64_t dim : out_order) {
      out_sizes.push_back(at(call.shape.dims(), dim));
      to.strides.push_back(at(strides, dim));
    }
    std::vector<W> out(sums.size());
    walk<2>(out_sizes, {to, Strided{0, row_major(out_sizes)}}, [&](const std::array<std::int64_t, 2>& place) {
      out[static_cast<std::size_t>(place[0])] = sums[static_cast<std::size_t>(place[1])];
    });
    return Expected<Value>(Value(rounded(call.shape, out)));
  });
}

}  // namespace hloom::interp
