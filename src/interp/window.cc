// Operations on windows (hlo-ops 7.2, 7.3).

#include "base/try.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::Window;

// Which elements of an array the windows over it hold.
class Windows {
 public:
  Windows(const Window& window, const Dims& dims) : window_(window), dims_(dims), strides_(row_major(dims)) {}
  // Calls f with the position of each element in the window at `place`, in row-major order. Holes of padding and
  // dilation are left out.
  template <typename F>
  void for_each(const Dims& place, const F& f) const {
    descend(place, 0, 0, f);
  }

 private:
  template <typename F>
  void descend(const Dims& place, std::size_t d, std::int64_t at, const F& f) const {
    if (d == dims_.size()) return f(at);
    const hlo::WindowDim& w = window_[d];
    const std::int64_t begin = place[d] * w.stride - w.pad_low, top = (dims_[d] - 1) * w.lhs_dilate;
    const std::int64_t skipped = begin < 0 ? (-begin + w.rhs_dilate - 1) / w.rhs_dilate : 0;
    for (std::int64_t k = skipped; k < w.size; ++k) {
      const std::int64_t p = begin + k * w.rhs_dilate;
      if (p > top) break;
      if (p % w.lhs_dilate == 0) descend(place, d + 1, at + p / w.lhs_dilate * strides_[d], f);
    }
  }
  const Window& window_;
  const Dims& dims_;
  Dims strides_;
};

// A window of rank 0 in the text stands for one of single elements.
Window window_of(const Call& call) {
  Window window = call.instruction.attr<hlo::WindowAttr>().window;
  if (window.empty()) window.resize(call.dims(0).size());
  return window;
}

Literal sum_in_f64(const Call& call, const Windows& windows, const Shape& shape) {
  const std::vector<double> x = widen<double>(call.array(0));
  std::vector<double> sums(static_cast<std::size_t>(product(shape.dims())), widen<double>(call.array(1))[0]);
  Dims place(shape.dims().size(), 0);
  for (double& sum : sums) {
    windows.for_each(place, [&](std::int64_t at) { sum += x[static_cast<std::size_t>(at)]; });
    next(place, shape.dims());
  }
  return rounded(shape, sums);
}

}  // namespace

Expected<Value> reduce_window(const Call& call) {
  ScalarFunction& function = call.machine.scalar_function(*call.instruction.to_apply());
  const Shape& shape = call.shape.is_tuple() ? call.shape.element(0) : call.shape;
  const Window window = window_of(call);
  const Windows windows(window, call.dims(0));
  if (is_float_sum(function, call.machine.options())) return Value(sum_in_f64(call, windows, shape));
  const std::int64_t n = call.num_operands() / 2;
  std::vector<Literal> results, inputs;
  for (std::int64_t i = 0; i < n; ++i) {
    results.emplace_back(call.shape.is_tuple() ? call.shape.element(i) : call.shape);
    const Literal init = as_type(call.array(n + i), results.back().dtype());
    fill(results.back().mutable_bytes().data(), results.back().num_elements(), init.bytes().data(),
         byte_width(init.dtype()));
    inputs.push_back(as_type(call.array(i), function.parameter_type(n + i)));
  }
  std::vector<std::byte*> out;
  std::vector<const std::byte*> in(static_cast<std::size_t>(2 * n));
  for (Literal& result : results) out.push_back(result.mutable_bytes().data());
  Expected<> good;
  Dims place(shape.dims().size(), 0);
  const std::int64_t count = product(shape.dims());
  for (std::int64_t o = 0; o < count && good; ++o, next(place, shape.dims())) {
    windows.for_each(place, [&](std::int64_t at) {
      for (std::size_t k = 0; k < results.size(); ++k) {
        in[k] = out[k];
        in[k + results.size()] = inputs[k].bytes().data() + at * byte_width(inputs[k].dtype());
      }
      if (good) good = function(out.data(), in.data(), 1);
    });
    for (std::size_t k = 0; k < results.size(); ++k) out[k] += byte_width(results[k].dtype());
  }
  TRY(std::move(good));
  return tuple_unless_one(std::move(results));
}

// The element that a window chooses is the first; each later one replaces it if select(chosen, later) is false.
Expected<Value> select_and_scatter(const Call& call) {
  ScalarFunction& select = call.machine.scalar_function(*call.instruction.called(0));
  ScalarFunction& scatter = call.machine.scalar_function(*call.instruction.called(1));
  const Literal &operand = call.array(0), &source = call.array(1);
  const Window window = window_of(call);
  const Windows windows(window, call.dims(0));
  const std::int64_t width = byte_width(call.shape.dtype()), operand_width = byte_width(operand.dtype());
  Literal result(call.shape);
  std::byte* to = result.mutable_bytes().data();
  fill(to, result.num_elements(), call.array(2).bytes().data(), width);
  Expected<> good;
  Dims place(call.dims(1).size(), 0);
  const std::int64_t count = source.num_elements();
  for (std::int64_t s = 0; s < count && good; ++s, next(place, call.dims(1))) {
    std::int64_t chosen = -1;
    windows.for_each(place, [&](std::int64_t at) {
      std::byte keep{0};
      if (chosen >= 0 && good) {
        std::byte* out[] = {&keep};
        const std::byte* in[] = {operand.bytes().data() + chosen * operand_width,
                                 operand.bytes().data() + at * operand_width};
        good = select(out, in, 1);
      }
      if (keep == std::byte{0}) chosen = at;
    });
    if (chosen < 0 || !good) continue;
    std::byte* out[] = {to + chosen * width};
    const std::byte* in[] = {source.bytes().data() + s * byte_width(source.dtype()), out[0]};
    good = scatter(out, in, 1);
  }
  TRY(std::move(good));
  return Value(std::move(result));
}

}  // namespace hloom::interp
