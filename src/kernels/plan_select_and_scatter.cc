#include "kernels/plan_select_and_scatter.h"

#include <algorithm>
#include <bit>

#include "base/try.h"
#include "kernels/elements.h"

namespace hloom::kernels {
namespace {

using hlo::Direction;
using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Value>;

class Planner {
 public:
  Planner(Builder& b, const Instruction& i, const Places& places)
      : b_(b), i_(i), place_(places.results[0]), window_(i.attr<hlo::WindowAttr>().window),
        e_(b, [&b, &places](std::int64_t n, const ShapeIndex&, const Point& point, Value mask) -> Expected<Value> {
          return b.load(places.operands[static_cast<std::size_t>(n)], point, mask);
        }) {}

  Expected<> plan() {
    const Value initial = TRY(e_.at(*i_.operand(2), {}));
    const std::int64_t n = place_.shape.num_elements();
    if (n == 0) return {};
    fill(initial, n);
    b_.forget_loads();
    const Shape& source = i_.operand(1)->shape();
    Point at;
    for (const std::int64_t d : source.dims()) at.push_back(index_of(b_.begin_loop(0, d)));
    const auto done = scatter_one(at);
    for (std::size_t d = 0; d < source.dims().size(); ++d) b_.end_loop();
    return done;
  }

 private:
  void fill(Value initial, std::int64_t n) {
    const auto lanes = static_cast<int>(
        std::min<std::int64_t>(32, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)))));
    const Index x = index_of(b_.begin_loop(0, n, lanes > 1 ? lanes : 0));
    b_.store_linear(place_.argument, x + place_.byte_offset / byte_width(place_.shape.dtype()), initial);
    b_.end_loop();
  }

  // Carries: whether one was chosen, its value, its coordinates.
  Expected<> scatter_one(const Point& at) {
    const DType type = i_.operand(0)->shape().dtype();
    const auto rank = window_.size();
    Values chosen = {b_.constant(DType::Pred, 0), b_.constant(type, 0)};
    for (std::size_t d = 0; d < rank; ++d) chosen.push_back(b_.constant_index(0));
    Point offset;
    for (const hlo::WindowDim& d : window_) {
      offset.push_back(index_of(b_.begin_loop(0, d.size)));
      for (Value& v : chosen) v = b_.add_carry(v);
    }
    auto next = candidate(at, offset, chosen);
    for (std::size_t d = 0; d < rank; ++d) {
      Values results;
      for (std::size_t c = 0; c < rank + 2; ++c) {
        b_.set_next(c, next ? (*next)[c] : b_.loop().carries[c].inside);
        results.push_back(b_.loop().carries[c].result);
      }
      b_.end_loop();
      if (next) next = results;
    }
    const Values found = TRY(std::move(next));
    return add(at, found);
  }

  Expected<Values> candidate(const Point& at, const Point& offset, const Values& sofar) {
    Value inside = b_.constant(DType::Pred, 1);
    Point from;
    for (std::size_t d = 0; d < window_.size(); ++d) {
      const Index x = at[d] * window_[d].stride + offset[d] + -window_[d].pad_low;
      const Value v = b_.affine(x);
      const auto require = [&](Value p) { inside = b_.line(Opcode::And, DType::Pred, {inside, p}); };
      require(e_.compare(Direction::Ge, v, b_.constant_index(0)));
      require(e_.compare(Direction::Lt, v, b_.constant_index(place_.shape.dim(static_cast<std::int64_t>(d)))));
      from.push_back(x);
    }
    const auto load = [&] { return e_.at(*i_.operand(0), from); };
    const Value x = TRY(e_.masked(inside, load));
    const Values keeps = TRY(e_.apply(*i_.called(0), {sofar[1], x}));
    // The first in range is taken, a later one where select says no to the one before.
    const Value none = b_.line(Opcode::Not, DType::Pred, {sofar[0]});
    const Value better = b_.line(Opcode::Or, DType::Pred, {none, b_.line(Opcode::Not, DType::Pred, {keeps[0]})});
    const Value take = b_.line(Opcode::And, DType::Pred, {inside, better});
    Values next = {b_.line(Opcode::Or, DType::Pred, {sofar[0], inside}),
                   b_.line(Opcode::Select, b_.type(x), {take, x, sofar[1]})};
    for (std::size_t d = 0; d < window_.size(); ++d)
      next.push_back(b_.line(Opcode::Select, DType::S64, {take, b_.affine(from[d]), sofar[d + 2]}));
    return next;
  }

  Expected<> add(const Point& at, const Values& found) {
    If branch;
    branch.selector = found[0];
    b_.begin_block();
    Point to;
    for (std::size_t d = 0; d < window_.size(); ++d) to.push_back(index_of(found[d + 2]));
    const auto body = [&]() -> Expected<> {
      const Value source = TRY(e_.at(*i_.operand(1), at));
      const Values sum = TRY(e_.apply(*i_.called(1), {source, b_.load(place_, to)}));
      b_.store(place_, to, sum[0]);
      return {};
    };
    const auto done = body();
    branch.branches.push_back(b_.end_block());
    branch.branches.emplace_back();
    b_.append(Statement{std::move(branch)});
    return done;
  }

  Builder& b_;
  const Instruction& i_;
  const Place& place_;
  const hlo::Window& window_;
  Elements e_;
};

}  // namespace

Expected<> plan_select_and_scatter_into(Builder& b, const Instruction& fusion, const Places& places) {
  return Planner(b, *fusion.called(0)->root(), places).plan();
}

}  // namespace hloom::kernels
