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

Expected<> plan_scan_into(Builder& b, const Instruction& fusion, const Places& places) {
  const Instruction& i = *fusion.called(0)->root();
  const std::int64_t dim = scan_dimension(i);
  const Shape& shape = i.shape();
  const std::int64_t n = shape.dim(dim);
  const bool forward = direction(i.attr<hlo::WindowAttr>().window[static_cast<std::size_t>(dim)], n) > 0;
  Elements e(b, [&](std::int64_t p, const ShapeIndex&, const Point& point, Value mask) -> Expected<Value> {
    return b.load(places.operands[static_cast<std::size_t>(p)], point, mask);
  });
  const Opcode op = hlo::reducer_op(*i.to_apply());
  const DType type = shape.dtype();
  const bool narrow = op == Opcode::Add && is_floating(type) && bit_width(type) < 32;
  const DType sum_type = narrow ? DType::F32 : type;
  const auto convert = [&](Value v, DType t) { return b.type(v) == t ? v : b.line(Opcode::Convert, t, {v}); };
  // The minor dimension goes by lanes unless it is the one that runs.
  Point point(static_cast<std::size_t>(shape.rank()));
  std::size_t loops = 0;
  const auto& order = shape.layout().minor_to_major;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (*d == dim || shape.dim(*d) == 1) continue;
    const bool minor = *d == order.front();
    const auto lanes = std::min<std::int64_t>(
        32, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(shape.dim(*d)))));
    point[static_cast<std::size_t>(*d)] = index_of(b.begin_loop(0, shape.dim(*d), minor && lanes > 1 ? static_cast<int>(lanes) : 0));
    ++loops;
  }
  const auto body = [&]() -> Expected<> {
    const Value initial = TRY(e.at(*i.operand(1), {}));
    const Value start = convert(initial, sum_type);
    const Index step = index_of(b.begin_loop(0, n));
    const Value sofar = b.add_carry(start);
    point[static_cast<std::size_t>(dim)] = forward ? step : step * -1 + (n - 1);
    const auto x = e.at(*i.operand(0), point);
    const Value next = x ? b.line(op, sum_type, {sofar, convert(*x, sum_type)}) : sofar;
    b.set_next(0, next);
    if (x) b.store(places.results[0], point, convert(next, type));
    b.end_loop();
    if (!x) return x.error();
    return {};
  };
  const auto done = body();
  while (loops-- > 0) b.end_loop();
  return done;
}

}  // namespace hloom::kernels
