#include "passes/loop.h"

#include <limits>
#include <vector>

#include "passes/match.h"

namespace hloom::passes {
namespace {

using Wide = __int128;

hlo::Direction reversed(hlo::Direction d) {
  switch (d) {
    case hlo::Direction::Ge: return hlo::Direction::Le;
    case hlo::Direction::Gt: return hlo::Direction::Lt;
    case hlo::Direction::Le: return hlo::Direction::Ge;
    case hlo::Direction::Lt: return hlo::Direction::Gt;
    case hlo::Direction::Eq:
    case hlo::Direction::Ne: return d;
  }
  return d;
}

// The comparisons that all must hold for `root` to.
void collect_conjuncts(Instruction* root, std::vector<Instruction*>& out) {
  if (is(root, Opcode::And) && root->shape().dtype() == DType::Pred) {
    collect_conjuncts(root->operand(0), out);
    collect_conjuncts(root->operand(1), out);
  } else {
    out.push_back(root);
  }
}

// The constant that `next` adds to leaf k.
std::optional<std::int64_t> step_of(Instruction* next, std::int64_t k) {
  if (next == nullptr || next->num_operands() != 2) return std::nullopt;
  const auto reads = [&](std::int64_t n) { return Loop::leaf_read(*next->operand(n)) == k; };
  if (is(next, Opcode::Add) && reads(0)) return constant_integer(next->operand(1));
  if (is(next, Opcode::Add) && reads(1)) return constant_integer(next->operand(0));
  if (!is(next, Opcode::Subtract) || !reads(0)) return std::nullopt;
  const auto step = constant_integer(next->operand(1));
  if (!step || *step == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return -*step;
}

// Iterations from `a` by `step` while `a direction limit` holds, if it comes to an end.
std::optional<Wide> count_trips(Wide a, Wide step, hlo::Direction direction, Wide limit) {
  switch (direction) {
    case hlo::Direction::Ge: return count_trips(a, step, hlo::Direction::Gt, limit - 1);
    case hlo::Direction::Le: return count_trips(a, step, hlo::Direction::Lt, limit + 1);
    case hlo::Direction::Gt: return count_trips(-a, -step, hlo::Direction::Lt, -limit);
    case hlo::Direction::Lt:
      if (a >= limit) return 0;
      if (step <= 0) return std::nullopt;
      return (limit - a + step - 1) / step;
    case hlo::Direction::Ne:
      if (a == limit) return 0;
      if (step == 0 || (limit - a) % step != 0 || (limit - a) / step < 0) return std::nullopt;
      return (limit - a) / step;
    case hlo::Direction::Eq:
      if (a != limit) return 0;
      return step == 0 ? std::nullopt : std::optional<Wide>(1);
  }
  return std::nullopt;
}

bool fits(DType type, Wide value) {
  const int bits = bit_width(type);
  const Wide largest = is_signed(type) ? (Wide{1} << (bits - 1)) - 1 : (Wide{1} << std::min(bits, 63)) - 1;
  return value >= (is_signed(type) ? -largest - 1 : 0) && value <= largest;
}

std::optional<Counter> counter_of(const Loop& loop, Instruction* conjunct) {
  if (!is(conjunct, Opcode::Compare) || !is_integral(conjunct->operand(0)->shape().dtype())) return std::nullopt;
  auto direction = conjunct->attr<hlo::CompareAttr>().direction;
  auto leaf = Loop::leaf_read(*conjunct->operand(0));
  auto limit = constant_integer(conjunct->operand(1));
  if (!leaf) {
    leaf = Loop::leaf_read(*conjunct->operand(1));
    limit = constant_integer(conjunct->operand(0));
    direction = reversed(direction);
  }
  if (!leaf || !limit || !conjunct->operand(0)->shape().is_scalar()) return std::nullopt;
  Instruction* start = loop.initial(*leaf);
  if (start == nullptr) return std::nullopt;
  const auto initial = constant_integer(start);
  const auto step = step_of(loop.next(*leaf), *leaf);
  const DType type = conjunct->operand(0)->shape().dtype();
  if (!initial || !step || !fits(type, *initial) || !fits(type, *limit)) return std::nullopt;
  // An unsigned step is as good as a negative one: the sum wraps.
  const auto trips = count_trips(*initial, *step, direction, *limit);
  if (!trips || !fits(type, *initial + *trips * *step) || *trips > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return Counter{*leaf, *initial, *step, static_cast<std::int64_t>(*trips), conjunct == loop.condition().root()};
}

}  // namespace

std::optional<Loop> Loop::of(Instruction& instruction) {
  if (!is(&instruction, Opcode::While) || !instruction.shape().is_tuple()) return std::nullopt;
  return Loop(instruction);
}

Instruction* Loop::initial(std::int64_t k) const {
  Instruction* init = instruction_->operand(0);
  return is(init, Opcode::Tuple) ? init->operand(k) : nullptr;
}

Instruction* Loop::next(std::int64_t k) const {
  Instruction* root = body().root();
  return is(root, Opcode::Tuple) ? root->operand(k) : nullptr;
}

std::optional<std::int64_t> Loop::leaf_read(const Instruction& i) {
  if (!is(&i, Opcode::GetTupleElement) || !is(i.operand(0), Opcode::Parameter)) return std::nullopt;
  return i.tuple_index();
}

bool Loop::is_invariant(std::int64_t k) const {
  const Instruction* i = next(k);
  return i != nullptr && leaf_read(*i) == k;
}

std::optional<Counter> find_counter(const Loop& loop) {
  std::vector<Instruction*> conjuncts;
  collect_conjuncts(loop.condition().root(), conjuncts);
  std::optional<Counter> best;
  for (Instruction* conjunct : conjuncts) {
    const auto counter = counter_of(loop, conjunct);
    if (counter && (!best || counter->trips < best->trips)) best = counter;
  }
  return best;
}

}  // namespace hloom::passes
