// Operations on windows (hlo-ops 7.2, 7.3).
//
// A reduce-window is done for all windows side by side: the outer loop takes the places within a window in row-major
// order, the inner one the windows, and each accumulator takes the element at that place. So each window sees its
// elements in order, and runs of windows are applied at once. Where each window is the one before and an element more,
// as in a cumulative sum, its accumulator continues from that one's (hlo/running_window.h).

#include <algorithm>
#include <optional>

#include "base/try.h"
#include "hlo/running_window.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::Window;
using hlo::WindowDim;

// A window of rank 0 in the text stands for one of single elements.
Window window_of(const Call& call) {
  Window window = call.instruction.attr<hlo::WindowAttr>().window;
  if (window.empty()) window.resize(call.dims(0).size());
  return window;
}

// The element at offset k of the window at place o of one dimension of d elements; -1 for holes and padding.
std::int64_t element_at(const WindowDim& w, std::int64_t d, std::int64_t o, std::int64_t k) {
  const std::int64_t p = o * w.stride + k * w.rhs_dilate - w.pad_low;
  if (p < 0 || p % w.lhs_dilate != 0 || p / w.lhs_dilate >= d) return -1;
  return p / w.lhs_dilate;
}

// Calls f with the position of each element in the window at `place`, in row-major order, holes left out.
template <typename F>
void for_each_element(const Window& window, const Dims& dims, const Dims& place, const F& f, std::size_t d = 0,
                      std::int64_t at = 0) {
  if (d == dims.size()) return f(at);
  for (std::int64_t k = 0; k < window[d].size; ++k) {
    const std::int64_t element = element_at(window[d], dims[d], place[d], k);
    if (element >= 0) for_each_element(window, dims, place, f, d + 1, at * dims[d] + element);
  }
}

// Calls f(first window, first element, n) for runs of n windows that take n elements in a row.
template <typename F>
void for_each_run(const Window& window, const Dims& dims, const Dims& places, const Dims& offset, const F& f,
                  std::size_t d = 0, std::int64_t place = 0, std::int64_t at = 0) {
  if (d == dims.size()) return f(place, at, 1);
  const WindowDim& w = window[d];
  if (d + 1 == dims.size() && w.stride == 1 && w.lhs_dilate == 1) {
    const std::int64_t shift = offset[d] * w.rhs_dilate - w.pad_low;
    const std::int64_t begin = std::max<std::int64_t>(0, -shift), end = std::min(places[d], dims[d] - shift);
    if (begin < end) f(place * places[d] + begin, at * dims[d] + begin + shift, end - begin);
    return;
  }
  for (std::int64_t o = 0; o < places[d]; ++o) {
    const std::int64_t element = element_at(w, dims[d], o, offset[d]);
    if (element >= 0)
      for_each_run(window, dims, places, offset, f, d + 1, place * places[d] + o, at * dims[d] + element);
  }
}

template <typename F>
void for_each_run_of_all(const Window& window, const Dims& dims, const Dims& places, const F& f) {
  Dims sizes;
  for (const WindowDim& w : window) sizes.push_back(w.size);
  if (product(sizes) == 0) return;
  Dims offset(sizes.size(), 0);
  do for_each_run(window, dims, places, offset, f);
  while (next(offset, sizes));
}

// `count` accumulators from `place` on take as many elements from `at` on.
struct Take {
  std::int64_t place = 0, at = 0, count = 1;
  bool element_first = false;  ///< the reducer's arguments are (element, so far)
};

// One reduce-window: what is taken, and which accumulators continue another.
template <typename TakeOne, typename Continue>
void reduce_windows(const Call& call, const Dims& places, const TakeOne& take, const Continue& continue_from) {
  const Window window = window_of(call);
  const Dims& dims = call.dims(0);
  const auto running = hlo::running_window(window, dims, places, *call.instruction.to_apply());
  if (!running) {
    for_each_run_of_all(window, dims, places, [&](std::int64_t place, std::int64_t at, std::int64_t n) { take(Take{place, at, n}); });
    return;
  }
  const auto along = static_cast<std::size_t>(running->dim);
  const Strided from{0, row_major(dims)}, to{0, row_major(places)};
  const std::int64_t n = places[along], ahead = running->ahead, direction = running->from_first ? 1 : -1;
  Dims lines = places;
  lines[along] = std::min<std::int64_t>(n, 1);
  walk<2>(lines, {to, from}, [&](const std::array<std::int64_t, 2>& at) {
    for (std::int64_t e = 0; e < std::min(ahead, dims[along]); ++e) take(Take{at[0], at[1] + e * from.strides[along], 1});
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t o = running->from_first ? k : n - 1 - k, place = at[0] + o * to.strides[along];
      if (k > 0) continue_from(place - direction * to.strides[along], place);
      if (o + ahead < dims[along]) take(Take{place, at[1] + (o + ahead) * from.strides[along], 1, !running->from_first});
    }
  });
}

Literal sum_in_f64(const Call& call, const Shape& shape) {
  const std::vector<double> x = widen<double>(call.array(0));
  std::vector<double> sums(static_cast<std::size_t>(product(shape.dims())), widen<double>(call.array(1))[0]);
  reduce_windows(
      call, shape.dims(),
      [&](const Take& take) {
        for (std::int64_t i = 0; i < take.count; ++i)
          sums[static_cast<std::size_t>(take.place + i)] += x[static_cast<std::size_t>(take.at + i)];
      },
      [&](std::int64_t from, std::int64_t to) {
        sums[static_cast<std::size_t>(to)] = sums[static_cast<std::size_t>(from)];
      });
  return rounded(shape, sums);
}

}  // namespace

Expected<Value> reduce_window(const Call& call) {
  ScalarFunction& function = call.machine.scalar_function(*call.instruction.to_apply());
  const Shape& shape = call.shape.is_tuple() ? call.shape.element(0) : call.shape;
  if (is_float_sum(function, call.machine.options())) return Value(sum_in_f64(call, shape));
  const std::int64_t n = call.num_operands() / 2;
  std::vector<Literal> results, inputs;
  std::vector<std::byte*> base, out(static_cast<std::size_t>(n));
  std::vector<const std::byte*> in(static_cast<std::size_t>(2 * n));
  for (std::int64_t i = 0; i < n; ++i) {
    results.emplace_back(call.shape.is_tuple() ? call.shape.element(i) : call.shape);
    const Literal init = as_type(call.array(n + i), results.back().dtype());
    fill(results.back().mutable_bytes().data(), results.back().num_elements(), init.bytes().data(),
         byte_width(init.dtype()));
    inputs.push_back(as_type(call.array(i), function.parameter_type(n + i)));
  }
  for (Literal& result : results) base.push_back(result.mutable_bytes().data());
  Expected<> good;
  reduce_windows(
      call, shape.dims(),
      [&](const Take& take) {
        const std::size_t sofar = take.element_first ? results.size() : 0, element = results.size() - sofar;
        for (std::size_t k = 0; k < results.size(); ++k) {
          in[k + sofar] = out[k] = base[k] + take.place * byte_width(results[k].dtype());
          in[k + element] = inputs[k].bytes().data() + take.at * byte_width(inputs[k].dtype());
        }
        if (good) good = function(out.data(), in.data(), take.count);
      },
      [&](std::int64_t from, std::int64_t to) {
        for (std::size_t k = 0; k < results.size(); ++k) {
          const std::int64_t width = byte_width(results[k].dtype());
          std::copy_n(base[k] + from * width, width, base[k] + to * width);
        }
      });
  TRY(std::move(good));
  return tuple_unless_one(std::move(results));
}

// The element that a window chooses is the first; each later one replaces it if select(chosen, later) is false.
Expected<Value> select_and_scatter(const Call& call) {
  ScalarFunction& select = call.machine.scalar_function(*call.instruction.called(0));
  ScalarFunction& scatter = call.machine.scalar_function(*call.instruction.called(1));
  const Literal &operand = call.array(0), &source = call.array(1);
  const Window window = window_of(call);
  const std::int64_t width = byte_width(call.shape.dtype()), operand_width = byte_width(operand.dtype());
  Literal result(call.shape);
  std::byte* to = result.mutable_bytes().data();
  fill(to, result.num_elements(), call.array(2).bytes().data(), width);
  Expected<> good;
  Dims place(call.dims(1).size(), 0);
  const std::int64_t count = source.num_elements();
  for (std::int64_t s = 0; s < count && good; ++s, next(place, call.dims(1))) {
    std::int64_t chosen = -1;
    for_each_element(window, call.dims(0), place, [&](std::int64_t at) {
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
