#include "kernels/plan_scan.h"

#include <algorithm>
#include <bit>

#include "base/try.h"
#include "kernels/elements.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool is_one(const hlo::WindowDim& d) {
  return d.size == 1 && d.stride == 1 && d.pad_low == 0 && d.pad_high == 0 && d.lhs_dilate == 1;
}

// 1: from the first element on; -1: from the last; 0: no running fold.
int direction(const hlo::WindowDim& d, std::int64_t n) {
  if (n < 2 || d.size != n || d.stride != 1 || d.lhs_dilate != 1 || d.rhs_dilate != 1) return 0;
  if (d.pad_low == n - 1 && d.pad_high == 0) return 1;
  return d.pad_low == 0 && d.pad_high == n - 1 ? -1 : 0;
}

}  // namespace

std::int64_t scan_dimension(const Instruction& i) {
  if (i.opcode() != Opcode::ReduceWindow || i.num_operands() != 2 || hlo::reducer_op(*i.to_apply()) == Opcode::Tuple) return -1;
  const auto& window = i.attr<hlo::WindowAttr>().window;
  std::int64_t found = -1;
  for (std::size_t d = 0; d < window.size(); ++d) {
    if (is_one(window[d])) continue;
    if (found >= 0 || direction(window[d], i.operand(0)->shape().dim(static_cast<std::int64_t>(d))) == 0) return -1;
    found = static_cast<std::int64_t>(d);
  }
  return found;
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
        op_(hlo::reducer_op(*scan_.to_apply())),
        type_(scan_.shape().dtype()) {
    const bool narrow = op_ == Opcode::Add && is_floating(type_) && bit_width(type_) < 32;
    sum_type_ = narrow ? DType::F32 : type_;
  }

  Expected<> plan() {
    const Shape& shape = scan_.shape();
    const auto& order = shape.layout().minor_to_major;
    std::vector<std::int64_t> outer;
    for (auto d = order.rbegin(); d != order.rend(); ++d)
      if (*d != dim_ && shape.dim(*d) != 1) outer.push_back(*d);
    Point point(static_cast<std::size_t>(shape.rank()));
    std::int64_t lines = 1;
    for (const std::int64_t d : outer) {
      const std::int64_t extent = shape.dim(d);
      const bool minor = d == order.front(), last = d == outer.back();
      // The minor dimension goes by lanes unless it is the one that runs; then a few lines go side by side.
      const int lanes = minor ? lanes_of(extent) : 0;
      if (last && !minor) lines = lines_of(extent);
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

  Value convert(Value v, DType type) { return b_.type(v) == type ? v : b_.line(Opcode::Convert, type, {v}); }

  // The lines that start at these points, one step of each after the other.
  Expected<> run(std::vector<Point> points) {
    const std::int64_t n = scan_.shape().dim(dim_);
    const bool forward = direction(scan_.attr<hlo::WindowAttr>().window[static_cast<std::size_t>(dim_)], n) > 0;
    const Value start = convert(TRY(elements_.at(*scan_.operand(1), {})), sum_type_);
    const Index step = index_of(b_.begin_loop(0, n));
    std::vector<Value> sofar;
    for (std::size_t l = 0; l < points.size(); ++l) sofar.push_back(b_.add_carry(start));
    for (std::size_t l = 0; l < points.size(); ++l) {
      points[l][static_cast<std::size_t>(dim_)] = forward ? step : step * -1 + (n - 1);
      const Value x = TRY(elements_.at(*scan_.operand(0), points[l]));
      const Value next = b_.line(op_, sum_type_, {sofar[l], convert(x, sum_type_)});
      b_.set_next(l, next);
      b_.store(places_.results[0], points[l], convert(next, type_));
    }
    b_.end_loop();
    return {};
  }

  Builder& b_;
  const Instruction& scan_;
  const Places& places_;
  Elements elements_;
  std::int64_t dim_, blocks_;
  Opcode op_;
  DType type_, sum_type_ = DType::Invalid;
};

}  // namespace

Expected<> plan_scan_into(Builder& b, const Instruction& fusion, const Places& places, std::int64_t blocks) {
  return ScanPlanner(b, fusion, places, blocks).plan();
}

}  // namespace hloom::kernels
