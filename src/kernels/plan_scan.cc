#include "kernels/plan_scan.h"

#include <algorithm>
#include <bit>

#include "base/try.h"
#include "hlo/reduce_order.h"
#include "hlo/running_window.h"
#include "kernels/elements.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

const Shape& first_array(const Instruction& i) { return i.shape().is_tuple() ? i.shape().element(0) : i.shape(); }

}  // namespace

std::int64_t scan_dimension(const Instruction& i) {
  if (i.opcode() != Opcode::ReduceWindow) return -1;
  const auto running = hlo::running_window(i);
  return running && running->ahead == 0 && first_array(i).dims() == i.operand(0)->shape().dims() ? running->dim : -1;
}

namespace {

class ScanPlanner {
 public:
  ScanPlanner(Builder& b, const Instruction& fusion, const Places& places, std::int64_t blocks)
      : b_(b),
        scan_(*fusion.called(0)->root()),
        places_(places),
        elements_(b, [&](std::int64_t p, const ShapeIndex&, const Point& point, Value mask) -> Expected<Value> {
          return b_.load(places_.operands[static_cast<std::size_t>(p)], point, mask);
        }),
        dim_(scan_dimension(scan_)),
        blocks_(blocks),
        forward_(hlo::running_window(scan_)->from_first),
        op_(hlo::reducer_op(*scan_.to_apply())) {}

  Expected<> plan() {
    const Shape& shape = first_array(scan_);
    const auto& order = shape.layout().minor_to_major;
    std::vector<std::int64_t> outer;
    for (auto d = order.rbegin(); d != order.rend(); ++d)
      if (*d != dim_ && shape.dim(*d) != 1) outer.push_back(*d);
    Point point(static_cast<std::size_t>(shape.rank()));
    std::int64_t lines = 1;
    for (const std::int64_t d : outer) {
      const std::int64_t extent = shape.dim(d);
      const bool last = d == outer.back();
      // The minor dimension goes by lanes unless it is the one that runs; then a few lines go side by side. Functions cost more than to
      // fetch lanes from their lines.
      const int lanes = d == order.front() || (last && is_costly()) ? lanes_of(extent) : 0;
      if (last && lanes == 0) lines = lines_of(extent);
      const std::int64_t block = d == outer.front() && blocks_ > 1 ? std::max<std::int64_t>({1, lanes, extent / lines / blocks_}) : 0;
      point[static_cast<std::size_t>(d)] = index_of(b_.begin_loop(0, extent / lines, lanes, block)) * lines;
    }
    std::vector<Point> points;
    for (std::int64_t l = 0; l < lines; ++l) {
      points.push_back(point);
      if (lines > 1) points.back()[static_cast<std::size_t>(outer.back())] = point[static_cast<std::size_t>(outer.back())] + l;
    }
    const auto done = run(std::move(points));
    for (std::size_t k = 0; k < outer.size(); ++k) b_.end_loop();
    return done;
  }

 private:
  static int lanes_of(std::int64_t extent) {
    const auto lanes = std::min<std::int64_t>(32, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent))));
    return lanes > 1 ? static_cast<int>(lanes) : 0;
  }

  // A step waits for the one before it: others' steps fill the time.
  static std::int64_t lines_of(std::int64_t extent) {
    for (const std::int64_t lines : {4, 2})
      if (extent % lines == 0) return lines;
    return 1;
  }

  bool is_costly() const {
    return std::ranges::any_of(scan_.to_apply()->instructions(), [](const Instruction& i) { return hlo::is_function(i.opcode()); });
  }

  Value convert(Value v, DType type) { return b_.type(v) == type ? v : b_.line(Opcode::Convert, type, {v}); }

  std::size_t arrays() const { return static_cast<std::size_t>(scan_.num_operands() / 2); }
  const Shape& result(std::size_t k) const { return scan_.shape().is_tuple() ? scan_.shape().element(static_cast<std::int64_t>(k)) : scan_.shape(); }
  // Sums of narrow floats are rounded where they are written alone.
  DType carried(std::size_t k) const { return hlo::accumulator(op_, result(k).dtype()); }

  Expected<std::vector<Value>> combine(const std::vector<Value>& sofar, const std::vector<Value>& x) {
    if (op_ != Opcode::Tuple) return std::vector{b_.line(op_, carried(0), {sofar[0], convert(x[0], carried(0))})};
    std::vector<Value> arguments = forward_ ? sofar : x;
    const std::vector<Value>& second = forward_ ? x : sofar;
    arguments.insert(arguments.end(), second.begin(), second.end());
    for (std::size_t k = 0; k < arguments.size(); ++k)
      arguments[k] = convert(arguments[k], scan_.to_apply()->parameter(static_cast<std::int64_t>(k))->shape().dtype());
    std::vector<Value> next = TRY(elements_.apply(*scan_.to_apply(), arguments));
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = convert(next[k], carried(k));
    return next;
  }

  // The lines that start at these points, one step of each after the other.
  Expected<> run(std::vector<Point> points) {
    const std::int64_t n = first_array(scan_).dim(dim_);
    std::vector<Value> start;
    for (std::size_t k = 0; k < arrays(); ++k)
      start.push_back(convert(TRY(elements_.at(*scan_.operand(static_cast<std::int64_t>(arrays() + k)), {})), carried(k)));
    const Index step = index_of(b_.begin_loop(0, n));
    std::vector<std::vector<Value>> sofar(points.size());
    for (std::vector<Value>& line : sofar)
      for (const Value s : start) line.push_back(b_.add_carry(s));
    for (std::size_t l = 0; l < points.size(); ++l) {
      points[l][static_cast<std::size_t>(dim_)] = forward_ ? step : step * -1 + (n - 1);
      std::vector<Value> x;
      for (std::size_t k = 0; k < arrays(); ++k) x.push_back(TRY(elements_.at(*scan_.operand(static_cast<std::int64_t>(k)), points[l])));
      const std::vector<Value> next = TRY(combine(sofar[l], x));
      for (std::size_t k = 0; k < arrays(); ++k) {
        b_.set_next(l * arrays() + k, next[k]);
        b_.store(places_.results[k], points[l], convert(next[k], result(k).dtype()));
      }
    }
    b_.end_loop();
    return {};
  }

  Builder& b_;
  const Instruction& scan_;
  const Places& places_;
  Elements elements_;
  std::int64_t dim_, blocks_;
  bool forward_;
  Opcode op_;
};

}  // namespace

Expected<> plan_scan_into(Builder& b, const Instruction& fusion, const Places& places, std::int64_t blocks) {
  return ScanPlanner(b, fusion, places, blocks).plan();
}

}  // namespace hloom::kernels
