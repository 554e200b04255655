#include "kernels/plan_sort.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/try.h"
#include "hlo/sort_form.h"
#include "kernels/elements.h"
#include "kernels/follow_split.h"

namespace hloom::kernels {
namespace {

using hlo::Direction;
using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Value>;

/// Whether the element at one point comes strictly before that at another.
using Before = std::function<Expected<Value>(const Point&, const Point&)>;
/// Stores what belongs at position `to` of a line, given the point it comes from.
using Move = std::function<void(const Point& from, Value position, const Point& to)>;

Elements without_parameters(Builder& b) {
  return Elements(b, [](std::int64_t, const ShapeIndex&, const Point&, Value) -> Expected<Value> { return kNoValue; });
}

/// One line's sort. Positions are S32 in two halves of the scratch, of n each; runs of `width` are merged from one half
/// to the other until one run is left. Then those that are kept are moved.
class LineSorter {
 public:
  LineSorter(Builder& b, const hlo::SortForm& form, Before before, Move move)
      : b_(b), e_(without_parameters(b)), before_(std::move(before)), move_(std::move(move)), first_(form.first), kept_(form.kept) {
    const Shape& shape = form.sort->operand(0)->shape();
    dim_ = static_cast<std::size_t>(form.dimension);
    n_ = shape.dim(form.dimension);
    for (std::size_t d = 0; d < shape.dims().size(); ++d)
      outer_dims_.push_back(d == dim_ ? 1 : shape.dims()[d]);
  }

  std::int64_t num_lines() const {
    std::int64_t lines = 1;
    for (const std::int64_t d : outer_dims_) lines *= d;
    return lines;
  }
  std::int64_t line_length() const { return n_; }

  Expected<> line(const Index& number) {
    line_ = b_.delinearise(number, outer_dims_);
    const Index start = index_of(b_.begin_loop(0, n_));
    b_.store_linear(scratch(), start, b_.line(Opcode::Convert, DType::S32, {b_.affine(start)}));
    b_.end_loop();
    b_.forget_loads();
    const Value one = b_.constant_index(1), zero = b_.constant_index(0);
    const auto some_left = [&](const Values& v) { return e_.compare(Direction::Lt, v[0], b_.constant_index(n_)); };
    const auto pass = [&](const Values& v) { return merge_all(v[0], v[1]); };
    const Values done = TRY(loop({one, zero}, some_left, pass));
    b_.forget_loads();
    const Value to = b_.begin_loop(0, kept_);
    const Value from = position(index_of(done[1]) + index_of(to) + first_);
    move_(at(index_of(from)), from, at(index_of(to)));
    b_.end_loop();
    return {};
  }

 private:
  using Condition = std::function<Value(const Values&)>;
  using Body = std::function<Expected<Values>(const Values&)>;

  Expected<Values> loop(const Values& initial, const Condition& condition, const Body& body) {
    While w;
    b_.begin_block();
    Values inside;
    for (const Value v : initial) {
      inside.push_back(b_.define(b_.type(v)));
      w.carries.push_back({inside.back(), v, kNoValue, kNoValue});
    }
    w.predicate = condition(inside);
    w.condition = b_.end_block();
    b_.begin_block();
    const auto next = body(inside);
    w.body = b_.end_block();
    const Values made = TRY(next);
    Values results;
    for (std::size_t k = 0; k < made.size(); ++k) {
      w.carries[k].next = made[k];
      w.carries[k].result = b_.define(b_.type(made[k]));
      results.push_back(w.carries[k].result);
    }
    b_.append(Statement{std::move(w)});
    return results;
  }

  // All pairs of runs of `width`, from the half at `source` to the other. Gives the next width and source.
  Expected<Values> merge_all(Value width, Value source) {
    const Value target = b_.affine(index_of(source) * -1 + n_);
    const Value n = b_.constant_index(n_);
    const auto some_left = [&](const Values& v) { return e_.compare(Direction::Lt, v[0], n); };
    const auto pair = [&](const Values& v) -> Expected<Values> {
      const Value low = v[0];
      const Value middle = minimum(b_.affine(index_of(low) + index_of(width)), n);
      const Value high = minimum(b_.affine(index_of(low) + index_of(width) * 2), n);
      TRY(merge(low, middle, high, source, target));
      return Values{high};
    };
    TRY(loop({b_.constant_index(0)}, some_left, pair));
    return Values{b_.affine(index_of(width) * 2), target};
  }

  // Runs [low, middle) and [middle, high). The right one is taken only where it comes strictly before.
  Expected<> merge(Value low, Value middle, Value high, Value source, Value target) {
    const auto some_left = [&](const Values& v) { return e_.compare(Direction::Lt, v[2], high); };
    const auto one = [&](const Values& v) { return merge_one(v, middle, high, source, target); };
    TRY(loop({low, middle, low}, some_left, one));
    return {};
  }

  // The next of two runs, whose next positions are v[0] and v[1], to v[2].
  Expected<Values> merge_one(const Values& v, Value middle, Value high, Value source, Value target) {
    b_.forget_loads();
    const Value last = b_.constant_index(n_ - 1);
    const Value left = position(index_of(source) + index_of(minimum(v[0], last)));
    const Value right = position(index_of(source) + index_of(minimum(v[1], last)));
    const Value before = TRY(before_(at(index_of(right)), at(index_of(left))));
    const Value left_done = e_.compare(Direction::Ge, v[0], middle);
    const Value right_left = e_.compare(Direction::Lt, v[1], high);
    const Value either = b_.line(Opcode::Or, DType::Pred, {left_done, before});
    const Value take = b_.line(Opcode::And, DType::Pred, {right_left, either});
    const Value taken = b_.line(Opcode::Select, DType::S64, {take, right, left});
    b_.store_linear(scratch(), index_of(target) + index_of(v[2]), b_.line(Opcode::Convert, DType::S32, {taken}));
    const Value step = b_.line(Opcode::Convert, DType::S64, {take});
    return Values{b_.affine(index_of(v[0]) + index_of(step) * -1 + 1), b_.affine(index_of(v[1]) + index_of(step)),
                  b_.affine(index_of(v[2]) + 1)};
  }

  Value minimum(Value a, Value b) { return b_.line(Opcode::Minimum, DType::S64, {a, b}); }
  int scratch() { return static_cast<int>(b_.kernel().arguments.size()); }

  Value position(const Index& where) {
    const Value v = b_.line(Opcode::Convert, DType::S64, {b_.load_linear(scratch(), where, DType::S32)});
    b_.set_range(v, {0, n_ - 1});
    return v;
  }

  Point at(const Index& along) const {
    Point p = line_;
    p[dim_] = along;
    return p;
  }

  Builder& b_;
  Elements e_;
  Before before_;
  Move move_;
  std::int64_t first_, kept_;
  std::size_t dim_ = 0;
  std::int64_t n_ = 0;
  std::vector<std::int64_t> outer_dims_;
  Point line_;
};

// Arguments of the kernel: operands, then results; the operands of `root` in its order.
Places add_arguments(Builder& b, const Instruction& fusion, const Instruction& root) {
  Places places;
  const auto add = [&](const Shape& shape, bool written) {
    const int number = static_cast<int>(b.kernel().arguments.size());
    b.kernel().arguments.push_back(argument_of(shape, (written ? "y" : "a") + std::to_string(number), written));
    return Place{number, 0, shape};
  };
  std::vector<Place> by_parameter;
  for (const Instruction* operand : fusion.operands()) by_parameter.push_back(add(operand->shape(), false));
  for (const Instruction* operand : root.operands())
    places.operands.push_back(by_parameter[static_cast<std::size_t>(operand->parameter_number())]);
  for (const Shape* leaf : leaves(fusion.shape())) places.results.push_back(add(*leaf, true));
  return places;
}

// A loop over the lines, shared out.
Expected<Kernel> over_lines(Builder& b, LineSorter& sorter) {
  const std::int64_t lines = sorter.num_lines(), n = sorter.line_length();
  std::int64_t blocks = 1;
  if (n > 0 && lines > 0) {
    blocks = std::clamp<std::int64_t>(lines * n / 2048, 1, std::min<std::int64_t>(lines, 256));
    const std::int64_t block = (lines + blocks - 1) / blocks;
    const Value line = b.begin_loop(0, lines, 0, blocks > 1 ? block : 0);
    const auto done = sorter.line(index_of(line));
    b.end_loop();
    TRY(done);
  }
  Kernel kernel = std::move(b).finish();
  kernel.blocks = blocks;
  even_blocks(kernel);
  kernel.block_cost = lines * n * 256 / kernel.blocks;
  kernel.scratch_bytes = 2 * n * static_cast<std::int64_t>(sizeof(std::int32_t));
  kernel.scratch_type = DType::S32;
  return kernel;
}

Expected<Kernel> plan_whole_sort(const Instruction& fusion, const hlo::SortForm& form) {
  const Instruction& sort = *form.sort;
  Builder b(fusion.name());
  const Places places = add_arguments(b, fusion, sort);
  Elements e = without_parameters(b);
  const Before before = [&](const Point& x, const Point& y) -> Expected<Value> {
    Values arguments;
    for (const Place& operand : places.operands) {
      arguments.push_back(b.load(operand, x));
      arguments.push_back(b.load(operand, y));
    }
    const Values results = TRY(e.apply(*sort.to_apply(), arguments));
    return results[0];
  };
  const Move move = [&](const Point& from, Value, const Point& to) {
    Values moved;
    for (const std::int64_t k : form.results) moved.push_back(b.load(places.operands[static_cast<std::size_t>(k)], from));
    for (std::size_t k = 0; k < moved.size(); ++k) b.store(places.results[k], to, moved[k]);
  };
  LineSorter sorter(b, form, before, move);
  return over_lines(b, sorter);
}

hlo::Comparison order_of(DType type) {
  if (is_floating(type)) return hlo::Comparison::TotalOrder;
  return is_signed(type) ? hlo::Comparison::Signed : hlo::Comparison::Unsigned;
}

Expected<Kernel> plan_topk(const Instruction& fusion, const hlo::SortForm& form) {
  const Instruction& topk = *form.sort;
  Builder b(fusion.name());
  const Places places = add_arguments(b, fusion, topk);
  Elements e = without_parameters(b);
  const auto& attributes = topk.attr<hlo::TopKAttr>();
  const Shape& shape = topk.operand(0)->shape();
  const Place& keys = places.operands[0];
  const Before before = [&](const Point& x, const Point& y) -> Expected<Value> {
    return e.compare(attributes.largest ? Direction::Gt : Direction::Lt, b.load(keys, x), b.load(keys, y),
                     order_of(shape.dtype()));
  };
  const Move move = [&](const Point& from, Value position, const Point& to) {
    b.store(places.results[0], to, b.load(keys, from));
    b.store(places.results[1], to, b.line(Opcode::Convert, DType::S32, {position}));
  };
  LineSorter sorter(b, form, before, move);
  return over_lines(b, sorter);
}

}  // namespace

bool is_sort_fusion(const Instruction& fusion) {
  const auto form = hlo::sort_form(*fusion.called(0)->root());
  return form && std::ranges::all_of(form->sort->operands(), [](const Instruction* o) { return o->opcode() == Opcode::Parameter; });
}

Expected<Kernel> plan_sort(const Instruction& fusion) {
  const auto form = hlo::sort_form(*fusion.called(0)->root());
  Kernel kernel = TRY(form->sort->opcode() == Opcode::Sort ? plan_whole_sort(fusion, *form) : plan_topk(fusion, *form));
  const Shape& first = *leaves(fusion.shape())[0];  // lines go from its outermost dimension on, unless that is the line
  const auto& splits = first.layout().parts().splits;
  if (!splits.empty() && splits[0].dimension != form->dimension) follow_split(kernel, first);
  return kernel;
}

}  // namespace hloom::kernels
