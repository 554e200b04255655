#include "passes/ranges.h"

#include <algorithm>
#include <limits>

#include "passes/loop.h"
#include "passes/match.h"

namespace hloom::passes {
namespace {

using Wide = __int128;
using Bound = std::optional<Range>;

constexpr std::int64_t kMaxConstantElements = 4096;

bool has_numbers(const Shape& shape) {
  return shape.is_array() && (is_integral(shape.dtype()) || shape.dtype() == DType::Pred);
}

// All values of the type; nothing for u64, whose do not fit.
Bound all_of(DType type) {
  if (type == DType::Pred) return Range{0, 1};
  if (type == DType::U64 || !is_integral(type)) return std::nullopt;
  const int bits = bit_width(type);
  if (is_unsigned(type)) return Range{0, (std::int64_t{1} << bits) - 1};
  const std::int64_t high = bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1;
  return Range{-high - 1, high};
}

// The range, if no value in it wraps in the type; else all of the type.
Bound fitting(DType type, Wide low, Wide high) {
  const Range limits = all_of(type).value_or(Range{0, std::numeric_limits<std::int64_t>::max()});
  if (low < limits.low || high > limits.high) return all_of(type);
  return Range{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

Bound hull(Bound a, Bound b) {
  if (!a || !b) return std::nullopt;
  return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Bound constant_range(const hlo::Literal& literal) {
  const std::int64_t n = literal.num_elements();
  if (n == 0 || n > kMaxConstantElements) return all_of(literal.dtype());
  Range range{hlo::element_as_int64(literal, 0), hlo::element_as_int64(literal, 0)};
  for (std::int64_t i = 1; i < n; ++i) {
    range.low = std::min(range.low, hlo::element_as_int64(literal, i));
    range.high = std::max(range.high, hlo::element_as_int64(literal, i));
  }
  // As int64 a large u64 is negative.
  return literal.dtype() == DType::U64 && range.low < 0 ? std::nullopt : Bound(range);
}

Bound multiply(DType type, const Range& a, const Range& b) {
  const Wide products[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high};
  return fitting(type, *std::ranges::min_element(products), *std::ranges::max_element(products));
}

Bound divide(DType type, const Range& a, const Range& b) {
  if (b.low <= 0) return all_of(type);
  const auto ends = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
  return Range{std::min(ends), std::max(ends)};
}

Bound remainder(DType type, const Range& a, const Range& b) {
  if (b.low <= 0) return all_of(type);
  const std::int64_t most = b.high - 1;
  return Range{a.low >= 0 ? 0 : std::max(a.low, -most), a.high <= 0 ? 0 : std::min(a.high, most)};
}

Bound bitwise_and(DType type, const Range& a, const Range& b) {
  if (a.low < 0 && b.low < 0) return all_of(type);
  if (a.low < 0 || b.low < 0) return Range{0, a.low < 0 ? b.high : a.high};
  return Range{0, std::min(a.high, b.high)};
}

Bound binary(Opcode opcode, DType type, const Range& a, const Range& b) {
  switch (opcode) {
    case Opcode::Add: return fitting(type, Wide{a.low} + b.low, Wide{a.high} + b.high);
    case Opcode::Subtract: return fitting(type, Wide{a.low} - b.high, Wide{a.high} - b.low);
    case Opcode::Multiply: return multiply(type, a, b);
    case Opcode::Divide: return divide(type, a, b);
    case Opcode::Remainder: return remainder(type, a, b);
    case Opcode::Maximum: return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
    case Opcode::Minimum: return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
    case Opcode::And: return bitwise_and(type, a, b);
    case Opcode::ShiftRightLogical:
    case Opcode::ShiftRightArithmetic: return a.low >= 0 ? Range{0, a.high} : all_of(type);
    default: return all_of(type);
  }
}

// The bound that a comparison that holds puts on `x`.
Bound narrowed(const Bound& range, hlo::Direction direction, const Range& other) {
  if (!range) return range;
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
  Range r = *range;
  using D = hlo::Direction;
  if (direction == D::Lt) r.high = std::min(r.high, other.high == kLeast ? kLeast : other.high - 1);
  if (direction == D::Le || direction == D::Eq) r.high = std::min(r.high, other.high);
  if (direction == D::Gt) r.low = std::max(r.low, other.low == kMost ? kMost : other.low + 1);
  if (direction == D::Ge || direction == D::Eq) r.low = std::max(r.low, other.low);
  return r.low <= r.high ? Bound(r) : range;  // never: then anything is true
}

hlo::Direction reversed(hlo::Direction d) {
  using D = hlo::Direction;
  switch (d) {
    case D::Ge: return D::Le;
    case D::Gt: return D::Lt;
    case D::Le: return D::Ge;
    case D::Lt: return D::Gt;
    case D::Eq:
    case D::Ne: return d;
  }
  return d;
}

}  // namespace

Bound Ranges::of(const Instruction* i) const {
  const auto found = known_.find(i);
  if (found != known_.end()) return found->second;
  return has_numbers(i->shape()) ? all_of(i->shape().dtype()) : std::nullopt;
}

void Ranges::bind(const Instruction& parameter, std::int64_t leaf, Bound range) {
  auto& leaves = leaves_[&parameter];
  leaves.resize(parameter.shape().elements().size());
  leaves[static_cast<std::size_t>(leaf)] = range;
}

Bound Ranges::compute_element(const Instruction& i) const {
  const Instruction* tuple = i.operand(0);
  const auto index = static_cast<std::size_t>(i.tuple_index());
  if (is(tuple, Opcode::Tuple)) return of(tuple->operand(i.tuple_index()));
  if (const auto found = leaves_.find(tuple); found != leaves_.end() && found->second[index])
    return found->second[index];
  return all_of(i.shape().dtype());
}

Bound Ranges::compute(const Instruction& i) const {
  const DType type = i.shape().dtype();
  const auto operand = [&](std::int64_t n) { return of(i.operand(n)); };
  switch (i.opcode()) {
    case Opcode::Constant: return constant_range(i.literal());
    case Opcode::Iota: return fitting(type, 0, std::max<std::int64_t>(i.shape().dim(i.iota_dimension()) - 1, 0));
    case Opcode::GetTupleElement: return compute_element(i);
    case Opcode::Broadcast:
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Copy: return operand(0);
    case Opcode::Pad:
    case Opcode::DynamicUpdateSlice: return hull(operand(0), operand(1));
    case Opcode::Select: return hull(operand(1), operand(2));
    case Opcode::Concatenate: {
      Bound all = operand(0);
      for (std::int64_t n = 1; n < i.num_operands(); ++n) all = hull(all, operand(n));
      return all;
    }
    case Opcode::Convert: {
      const Bound x = operand(0);
      return x && type != DType::Pred ? fitting(type, x->low, x->high) : all_of(type);
    }
    case Opcode::Clamp: {
      const Bound low = operand(0), x = operand(1), high = operand(2);
      if (!low || !x || !high) return all_of(type);
      return binary(Opcode::Minimum, type, *binary(Opcode::Maximum, type, *low, *x), *high);
    }
    case Opcode::Negate:
      return operand(0) ? fitting(type, -Wide{operand(0)->high}, -Wide{operand(0)->low}) : all_of(type);
    default: break;
  }
  if (i.num_operands() != 2 || type == DType::Pred || !hlo::is_elementwise(i.opcode())) return all_of(type);
  const Bound a = operand(0), b = operand(1);
  return a && b ? binary(i.opcode(), type, *a, *b) : all_of(type);
}

namespace {

// What the condition says about leaf k when it holds.
Bound when_condition_holds(const Ranges& ranges, Instruction* holds, std::int64_t leaf, Bound range) {
  if (is(holds, Opcode::And)) {
    range = when_condition_holds(ranges, holds->operand(0), leaf, range);
    return when_condition_holds(ranges, holds->operand(1), leaf, range);
  }
  if (!is(holds, Opcode::Compare) || !has_numbers(holds->operand(0)->shape())) return range;
  const auto direction = holds->attr<hlo::CompareAttr>().direction;
  for (const int n : {0, 1}) {
    const auto other = ranges.of(holds->operand(1 - n));
    if (Loop::leaf_read(*holds->operand(n)) == leaf && other)
      range = narrowed(range, n == 0 ? direction : reversed(direction), *other);
  }
  return range;
}

}  // namespace

// An iteration widens what it does not leave as it is: three rounds find what settles by itself, then an end that still
// moves is taken to be the type's, and the condition cuts it again.
void Ranges::analyze_loop(const Instruction& loop) {
  const auto view = Loop::of(const_cast<Instruction&>(loop));
  if (!view || callers_.at(loop.body()).size() != 1 || callers_.at(loop.condition()).size() != 1) return;
  const Instruction &in_body = *view->body().parameter(0), &in_condition = *view->condition().parameter(0);
  std::vector<Bound> state;
  for (std::int64_t k = 0; k < view->num_leaves(); ++k) {
    const Instruction* start = view->initial(k);
    const Shape& shape = loop.shape().element(k);
    state.push_back(start != nullptr && has_numbers(shape) ? of(start) : std::nullopt);
  }
  constexpr int kExactRounds = 3, kMaxRounds = 8;
  bool settled = false;
  for (int round = 0; round < kMaxRounds && !settled; ++round) {
    settled = true;
    for (std::int64_t k = 0; k < view->num_leaves(); ++k) bind(in_condition, k, state[static_cast<std::size_t>(k)]);
    analyze(view->condition(), Loops::AsTheyAre);
    for (std::int64_t k = 0; k < view->num_leaves(); ++k)
      bind(in_body, k, when_condition_holds(*this, view->condition().root(), k, state[static_cast<std::size_t>(k)]));
    analyze(view->body(), Loops::AsTheyAre);
    for (std::int64_t k = 0; k < view->num_leaves(); ++k) {
      Bound& now = state[static_cast<std::size_t>(k)];
      const Instruction* next = view->next(k);
      if (!now || view->is_invariant(k)) continue;
      const Bound joined = next == nullptr ? std::nullopt : hull(now, of(next));
      if (joined == now) continue;
      settled = false;
      const Bound limits = all_of(loop.shape().element(k).dtype());
      const bool widens = round >= kExactRounds && joined && limits;
      now = widens ? Bound(Range{joined->low < now->low ? limits->low : now->low,
                                 joined->high > now->high ? limits->high : now->high})
                   : joined;
    }
  }
  if (!settled) state.assign(state.size(), std::nullopt);
  for (std::int64_t k = 0; k < view->num_leaves(); ++k) {
    const Bound& now = state[static_cast<std::size_t>(k)];
    bind(in_condition, k, now);
    bind(in_body, k, settled ? when_condition_holds(*this, view->condition().root(), k, now) : now);
    bind(loop, k, now);
  }
}

// Loops::AsTheyAre: of a loop inside only what goes round unchanged is known, until its own turn comes.
void Ranges::analyze(const hlo::Computation& computation, Loops loops) {
  for (const Instruction& i : computation.instructions()) {
    if (const auto view = Loop::of(const_cast<Instruction&>(i))) {
      leaves_[&i].assign(static_cast<std::size_t>(view->num_leaves()), std::nullopt);
      for (std::int64_t k = 0; k < view->num_leaves(); ++k)
        if (view->is_invariant(k) && view->initial(k) != nullptr) bind(i, k, of(view->initial(k)));
      if (loops == Loops::Inside) analyze_loop(i);
    }
    if (!has_numbers(i.shape()) || is(&i, Opcode::Parameter)) continue;
    const Bound range = compute(i);
    if (range)
      known_[&i] = *range;
    else
      known_.erase(&i);
  }
}

Ranges::Ranges(const hlo::Module& module) : callers_(hlo::callers(module)) {
  std::vector<const hlo::Computation*> order;
  for (const hlo::Computation& c : module.computations()) order.push_back(&c);
  std::ranges::reverse(order);  // callers first
  for (const hlo::Computation* c : order) analyze(*c, Loops::Inside);
}

}  // namespace hloom::passes
