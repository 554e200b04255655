// Elements of what sums or otherwise folds many: reduce, reduce-window, dot, convolution.
#include <algorithm>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "fusion/cost.h"
#include "hlo/identity.h"
#include "kernels/elements.h"
#include "kernels/taps.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool is_reduced(const Instruction& reduce, std::int64_t d) {
  return std::ranges::find(reduce.dimensions(), d) != reduce.dimensions().end();
}

}  // namespace

Point reduced_point(const Instruction& reduce, const Point& kept, const Point& window) {
  Point from(static_cast<std::size_t>(reduce.operand(0)->shape().rank()));
  std::size_t k = 0, w = 0;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const bool gone = is_reduced(reduce, static_cast<std::int64_t>(d));
    if (gone && w < window.size()) from[d] = window[w++];
    if (!gone) from[d] = kept[k++];
  }
  return from;
}

std::vector<std::int64_t> reduced_box(const Instruction& reduce, std::int64_t end) {
  std::vector<std::int64_t> box;
  const Shape& shape = reduce.operand(0)->shape();
  for (std::int64_t d = 0; d < std::min(end, shape.rank()); ++d)
    if (is_reduced(reduce, d)) box.push_back(shape.dim(d));
  return box;
}

Expected<std::vector<Value>> Elements::walk(const std::vector<std::int64_t>& box, std::vector<Value> initial,
                                            const Walk& step) {
  struct Level {
    std::int64_t extent;
    std::size_t dim;
  };
  std::vector<Level> levels;
  Point at(box.size());
  for (std::size_t d = 0; d < box.size(); ++d)
    if (box[d] != 1) levels.push_back({box[d], d});
  std::vector<Value> values = std::move(initial);
  std::vector<std::vector<Value>> outer;
  for (const Level& level : levels) {
    at[level.dim] = index_of(b_.begin_loop(0, level.extent));
    outer.push_back(values);
    for (Value& v : values) v = b_.add_carry(v);
  }
  auto next = step(at, values);
  // Loops must close whatever happened, so that the builder stays whole.
  for (std::size_t l = levels.size(); l-- > 0;) {
    const std::size_t carries = b_.loop().carries.size();
    std::vector<Value> results;
    for (std::size_t c = 0; c < carries; ++c) {
      b_.set_next(c, next ? (*next)[c] : b_.loop().carries[c].inside);
      results.push_back(b_.loop().carries[c].result);
    }
    b_.end_loop();
    if (next) next = results;
  }
  return next;
}

// A reduce by lanes over the minor reduced dimension, one by one over the others.
Expected<Value> Elements::fold(const Instruction& i, const Point& kept, const hlo::ReduceOrder& order) {
  const Instruction& operand = *i.operand(0);
  const Shape& shape = operand.shape();
  const Opcode op = hlo::reduce_op(i);
  const DType sum_type = hlo::accumulator(op, i.shape().dtype());
  const std::vector<std::int64_t> outer_box = reduced_box(i, order.first);
  const Value identity = b_.constant(sum_type, hlo::identity_bits(op, sum_type));
  const auto results = TRY(walk(outer_box, {identity}, [&](const Point& window, const std::vector<Value>& sofar)
                                                           -> Expected<std::vector<Value>> {
    const Index lane = index_of(b_.begin_loop(0, order.extent, order.lanes()));
    const Value inside = b_.add_fold(op, identity);
    Point at_point = reduced_point(i, kept, window);
    const std::vector<std::int64_t> minor(shape.dims().begin() + static_cast<std::ptrdiff_t>(order.first), shape.dims().end());
    const Point tail = b_.delinearise(lane, minor);
    std::copy(tail.begin(), tail.end(), at_point.begin() + static_cast<std::ptrdiff_t>(order.first));
    const bool nested = std::exchange(fold_reduces, false);
    auto x = at(operand, at_point);
    fold_reduces = nested;
    const Value next =
        x ? b_.line(op, sum_type, {inside, convert(*x, sum_type)}) : inside;
    b_.set_fold_next(0, next);
    const Value total = b_.loop().folds[0].carry.result;
    b_.end_loop();
    if (!x) return x.error();
    return std::vector<Value>{b_.line(op, sum_type, {sofar[0], total})};
  }));
  const Value initial = TRY(at(*i.operand(1), {}));
  return convert(b_.line(op, sum_type, {convert(initial, sum_type), results[0]}), i.shape().dtype());
}

Expected<Value> Elements::reduce(const Instruction& i, const Point& point, std::int64_t result) {
  const hlo::ReduceOrder order = hlo::order_of(i);
  if (order.by_lanes && fold_reduces && !b_.in_lanes()) return fold(i, point, order);
  const auto best = fold_reduces && !b_.in_lanes() ? best_by_lanes(i) : std::nullopt;
  if (best)
    TRY(reduce_to_best(i, point, *best));
  else
    TRY(reduce_together({{&i, point}}));
  return at(i, point, i.num_operands() == 2 ? ShapeIndex{} : ShapeIndex{result});
}

Expected<std::vector<Value>> Elements::reduce_step(const Instruction& i, const Point& from, std::vector<Value> sofar) {
  const std::int64_t n = i.num_operands() / 2;
  for (std::int64_t k = 0; k < n; ++k) {
    const Value x = TRY(at(*i.operand(k), from));
    sofar.push_back(n == 1 ? convert(x, b_.type(sofar[0])) : x);
  }
  const Opcode op = hlo::reduce_op(i);
  if (op != Opcode::Tuple) return std::vector<Value>{b_.line(op, b_.type(sofar[0]), sofar)};
  return apply(*i.to_apply(), sofar);
}

// The values of all reduces go round one loop; those of a variadic one are several.
Expected<> Elements::reduce_together(const std::vector<std::pair<const Instruction*, Point>>& requests) {
  const std::vector<std::int64_t> box = reduced_box(*requests[0].first, requests[0].first->operand(0)->shape().rank());
  std::vector<Value> initial;
  for (const auto& [i, point] : requests) {
    const std::int64_t n = i->num_operands() / 2;
    for (std::int64_t k = 0; k < n; ++k) {
      const Value v = TRY(at(*i->operand(n + k), {}));
      initial.push_back(n == 1 ? convert(v, hlo::accumulator(hlo::reduce_op(*i), i->operand(0)->shape().dtype())) : v);
    }
  }
  const auto step = [&](const Point& window, const std::vector<Value>& sofar) -> Expected<std::vector<Value>> {
    std::vector<Value> next;
    auto own = sofar.begin();
    for (const auto& [i, point] : requests) {
      const auto end = own + i->num_operands() / 2;
      const auto values = TRY(reduce_step(*i, reduced_point(*i, point, window), std::vector<Value>(own, end)));
      next.insert(next.end(), values.begin(), values.end());
      own = end;
    }
    return next;
  };
  const bool unrolled = requests.size() == 1 && fusion::is_unrolled(*requests[0].first);
  const std::vector<Value> results = TRY(unrolled ? walk_unrolled(box, initial, step) : walk(box, initial, step));
  auto at = results.begin();
  for (const auto& [i, point] : requests)
    for (std::int64_t k = 0; k < i->num_operands() / 2; ++k) {
      const bool single = i->num_operands() == 2;
      const DType wanted = single ? i->shape().dtype() : i->shape().element(k).dtype();
      remember(*i, point, single ? ShapeIndex{} : ShapeIndex{k}, convert(*at++, wanted));
    }
  return {};
}

Expected<std::vector<Value>> Elements::walk_unrolled(const std::vector<std::int64_t>& box, std::vector<Value> values, const Walk& step) {
  std::int64_t elements = 1;
  for (const std::int64_t n : box) elements *= n;
  for (std::int64_t e = 0; e < elements; ++e) {
    Point at(box.size());
    std::int64_t rest = e;
    for (std::size_t d = box.size(); d-- > 0; rest /= box[d]) at[d].offset = rest % box[d];
    values = TRY(step(at, values));
  }
  return values;
}

// Walks the window's positions; those in padding or in holes of dilation are left out.
Expected<Value> Elements::reduce_window(const Instruction& i, const Point& point, std::int64_t result) {
  const std::int64_t n = i.num_operands() / 2;
  const auto& window = i.attr<hlo::WindowAttr>().window;
  const Shape& shape = i.operand(0)->shape();
  std::vector<std::int64_t> box;
  for (const hlo::WindowDim& d : window) box.push_back(d.size);
  const DType type = shape.dtype();
  const bool plain = n == 1 && i.shape().dtype() == type && i.operand(n)->shape().dtype() == type;
  const Opcode op = plain ? hlo::reducer_op(*i.to_apply()) : Opcode::Tuple;
  const DType sum_type = hlo::accumulator(op, type);
  std::vector<Value> initial;
  for (std::int64_t k = 0; k < n; ++k) {
    const Value v = TRY(at(*i.operand(n + k), {}));
    initial.push_back(n == 1 ? convert(v, sum_type) : v);
  }
  const auto step = [&](const Point& offset, const std::vector<Value>& sofar) -> Expected<std::vector<Value>> {
    Value mask = kNoValue;
    const auto place = window_point(window, shape.dims(), point, offset, mask);
    if (!place) return sofar;
    const Point& from = *place;
    const auto next = [&]() -> Expected<std::vector<Value>> {
      std::vector<Value> arguments = sofar;
      for (std::int64_t k = 0; k < n; ++k) {
        const Value x = TRY(at(*i.operand(k), from));
        arguments.push_back(n == 1 ? convert(x, sum_type) : x);
      }
      if (op != Opcode::Tuple) return std::vector<Value>{b_.line(op, sum_type, arguments)};
      return apply(*i.to_apply(), arguments);
    };
    std::vector<Value> values = TRY(mask == kNoValue ? next() : masked(mask, next));
    if (mask != kNoValue)
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = select(mask, values[k], sofar[k]);
    return values;
  };
  const std::vector<Value> results = TRY(goes_by_taps(i) ? walk_unrolled(box, initial, step) : walk(box, initial, step));
  const Value value = results[static_cast<std::size_t>(result)];
  return n == 1 ? convert(value, i.shape().dtype()) : value;
}

// The operand's coordinates under a window: o·stride + w·dilation - padding, over the base dilation. None if that is no element
// of the operand wherever the output is.
std::optional<Point> Elements::window_point(const hlo::Window& window, const std::vector<std::int64_t>& dims, const Point& output,
                                            const Point& offset, Value& mask) {
  Point from(output.size());
  const auto require = [&](Value p) {
    if (p != kNoValue) mask = mask == kNoValue ? p : b_.line(Opcode::And, DType::Pred, {mask, p});
  };
  for (std::size_t d = 0; d < output.size(); ++d) {
    const hlo::WindowDim& w = window[d];
    Index x = output[d] * w.stride + offset[d] * w.rhs_dilate + -w.pad_low;
    if (w.lhs_dilate > 1) {
      const std::int64_t lift = std::max<std::int64_t>(0, (w.pad_low + w.lhs_dilate - 1) / w.lhs_dilate) * w.lhs_dilate;
      auto [quotient, remainder] = b_.divmod(x + lift, w.lhs_dilate);
      const Range r = b_.range(remainder);
      if (r.lo > 0) return std::nullopt;
      if (r.hi != 0 && b_.findings != nullptr && offset[d].terms.empty()) want_phases(x + lift, w.lhs_dilate);
      if (r.hi != 0) require(compare(hlo::Direction::Eq, b_.affine(remainder), b_.constant_index(0)));
      x = quotient + -(lift / w.lhs_dilate);
    }
    const Range r = b_.range(x);
    if (r.hi < 0 || r.lo >= dims[d]) return std::nullopt;
    if (b_.findings != nullptr && offset[d].terms.empty()) {
      if (r.lo < 0) want_cut(x, 0);
      if (r.hi >= dims[d]) want_cut(x, dims[d]);
    }
    require(in_range(x, 0, dims[d]));
    from[d] = x;
  }
  return from;
}

// Every so many elements of a base dilation are alike: a loop over one period is cut into its iterations.
void Elements::want_phases(const Index& index, std::int64_t period) {
  if (!b_.findings->may_cut) return;
  constexpr std::int64_t kMostPhases = 4;
  for (const Index::Term& t : index.terms) {
    const Range r = b_.range(index_of(t.value));
    if (!b_.may_shape(t.value) || t.coefficient % period == 0 || r.hi - r.lo >= kMostPhases) continue;
    for (std::int64_t v = r.lo + 1; v <= r.hi; ++v) b_.findings->cuts[t.value].push_back(v);
  }
}

Expected<Value> Elements::multiply_sum(const std::vector<std::int64_t>& box, DType type, bool by_taps, const Factors& factors) {
  const bool narrow = is_floating(type) && bit_width(type) < 32;
  const DType sum_type = narrow ? DType::F32 : type;
  const Value zero = b_.constant(sum_type, 0);
  const auto step = [&](const Point& window, const std::vector<Value>& sofar) -> Expected<std::vector<Value>> {
    Value mask = kNoValue;
    const auto found = TRY(factors(window, mask));
    if (!found) return sofar;
    const Value a = convert(found->first, sum_type), b = convert(found->second, sum_type);
    Value next;
    if (sum_type == DType::F32 || sum_type == DType::F64)
      next = b_.multiply_add(a, b, sofar[0]);
    else
      next = b_.line(Opcode::Add, sum_type, {sofar[0], b_.line(Opcode::Multiply, sum_type, {a, b})});
    if (mask != kNoValue) next = select(mask, next, sofar[0]);
    return std::vector<Value>{next};
  };
  const std::vector<Value> sums = TRY(by_taps ? walk_unrolled(box, {zero}, step) : walk(box, {zero}, step));
  return convert(sums[0], type);
}

Expected<Value> Elements::dot(const Instruction& i, const Point& point) {
  const auto& d = i.attr<hlo::DotAttr>();
  const Shape& lhs = i.operand(0)->shape();
  const Shape& rhs = i.operand(1)->shape();
  Point a(static_cast<std::size_t>(lhs.rank())), b(static_cast<std::size_t>(rhs.rank()));
  std::size_t next = 0;
  for (std::size_t k = 0; k < d.lhs_batch.size(); ++k, ++next) {
    a[static_cast<std::size_t>(d.lhs_batch[k])] = point[next];
    b[static_cast<std::size_t>(d.rhs_batch[k])] = point[next];
  }
  const auto in = [](const hlo::Dims& dims, std::int64_t x) { return std::ranges::find(dims, x) != dims.end(); };
  for (std::int64_t x = 0; x < lhs.rank(); ++x)
    if (!in(d.lhs_batch, x) && !in(d.lhs_contracting, x)) a[static_cast<std::size_t>(x)] = point[next++];
  for (std::int64_t x = 0; x < rhs.rank(); ++x)
    if (!in(d.rhs_batch, x) && !in(d.rhs_contracting, x)) b[static_cast<std::size_t>(x)] = point[next++];
  std::vector<std::int64_t> box;
  for (const std::int64_t x : d.lhs_contracting) box.push_back(lhs.dim(x));
  return multiply_sum(box, i.shape().dtype(), false, [&](const Point& k, Value&) -> Expected<Pair> {
    for (std::size_t n = 0; n < k.size(); ++n) {
      a[static_cast<std::size_t>(d.lhs_contracting[n])] = k[n];
      b[static_cast<std::size_t>(d.rhs_contracting[n])] = k[n];
    }
    const Value x = TRY(at(*i.operand(0), a));
    const Value y = TRY(at(*i.operand(1), b));
    return Pair(std::pair(x, y));
  });
}

// out[n, o, y…] = Σ over kernel positions and input features (hlo-ops 8.4).
Expected<Value> Elements::convolution(const Instruction& i, const Point& point) {
  const auto& c = i.attr<hlo::ConvolutionAttr>();
  const Shape& input = i.operand(0)->shape();
  const Shape& kernel = i.operand(1)->shape();
  const auto u = [](std::int64_t d) { return static_cast<std::size_t>(d); };
  const std::int64_t out_features = kernel.dim(c.dims.kernel_output);
  const std::int64_t in_features = kernel.dim(c.dims.kernel_input);
  const Index o = point[u(c.dims.output_feature)];
  Point output;
  std::vector<std::int64_t> box, spatial;
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    output.push_back(point[u(c.dims.output_spatial[s])]);
    box.push_back(c.window[s].size);
    spatial.push_back(input.dim(c.dims.input_spatial[s]));
  }
  box.push_back(in_features);
  const Index feature_group = b_.divmod(o, out_features / c.feature_groups).first;
  const Index batch_group = b_.divmod(o, out_features / c.batch_groups).first;
  return multiply_sum(box, i.shape().dtype(), goes_by_taps(i), [&](const Point& k, Value& mask) -> Expected<Pair> {
    const Point offset(k.begin(), k.end() - 1);
    const auto place = window_point(c.window, spatial, output, offset, mask);
    if (!place) return Pair();
    const Point& from = *place;
    Point a(u(input.rank())), w(u(kernel.rank()));
    a[u(c.dims.input_batch)] =
        batch_group * (input.dim(c.dims.input_batch) / c.batch_groups) + point[u(c.dims.output_batch)];
    a[u(c.dims.input_feature)] = feature_group * in_features + k.back();
    w[u(c.dims.kernel_input)] = k.back();
    w[u(c.dims.kernel_output)] = o;
    for (std::size_t s = 0; s < from.size(); ++s) {
      a[u(c.dims.input_spatial[s])] = from[s];
      w[u(c.dims.kernel_spatial[s])] =
          c.window[s].reversal ? offset[s] * -1 + (c.window[s].size - 1) : offset[s];
    }
    const auto input_at = [&] { return at(*i.operand(0), a); };
    const Value x = TRY(mask == kNoValue ? input_at() : masked(mask, input_at));
    const Value y = TRY(at(*i.operand(1), w));
    return Pair(std::pair(x, y));
  });
}

}  // namespace hloom::kernels
