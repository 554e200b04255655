#include "buffers/start_copies.h"

#include <algorithm>
#include <optional>

#include "buffers/in_place.h"
#include "buffers/steps.h"
#include "buffers/values.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kStartedBytes = 64 << 10;  // with less, a thread's wake costs more than the copy
constexpr std::int64_t kMuchWork = std::int64_t{1} << 40;

std::int64_t array_bytes(const Shape& shape) {
  std::int64_t bytes = 0;
  for (const Shape* leaf : leaves(shape)) bytes += leaf_bytes(*leaf);
  return bytes;
}

bool does_nothing(const Instruction& i) {
  return is_alias(i) || i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant;
}

// What goes on while the instruction runs, in bytes.
std::int64_t work(const Instruction& i) {
  if (does_nothing(i)) return 0;
  if (!step_computations(i).empty()) return kMuchWork;
  std::int64_t bytes = array_bytes(i.shape());
  for (const Instruction* operand : i.operands()) bytes += array_bytes(operand->shape());
  return std::min(bytes, kMuchWork);
}

/// The places in a computation's order where a copy may start and must be done.
class Span {
 public:
  Span(const std::vector<Instruction*>& order, std::size_t at, const Values& values)
      : order_(order), copy_(*order[at]), values_(values), source_(values.of(*copy_.operand(0), 0)) {
    begin = at;
    if (space_of(copy_.shape()) == 0) hoist();
    end = at + 1;
    while (end < order.size() && !must_wait(*order[end])) ++end;
    for (std::size_t n = begin; n < end; ++n)
      if (n != at) beside = std::min(beside + work(*order[n]), kMuchWork);
  }

  std::size_t begin = 0, end = 0;
  std::int64_t beside = 0;  ///< work in between

 private:
  void hoist() {
    std::int64_t hidden = 0;
    for (; begin > 0 && hidden < leaf_bytes(copy_.shape()) && !must_come_before(*order_[begin - 1]); --begin)
      hidden += work(*order_[begin - 1]);
  }

  // What names the source goes with the start.
  bool must_come_before(const Instruction& i) const {
    const auto& controls = copy_.control_predecessors();
    if (std::ranges::find(controls, &i) != controls.end() || i.opcode() == Opcode::Parameter) return true;
    return !is_alias(i) && reads(source_, values_.of(i));
  }

  bool must_wait(const Instruction& i) const {
    const auto& operands = i.operands();
    const auto& controls = copy_.control_successors();
    if (std::ranges::find(operands, &copy_) != operands.end()) return true;
    return std::ranges::find(controls, &i) != controls.end() || may_write_over_source(i);
  }

  // Its result may be best where the source is: then that must not be kept any longer.
  bool may_write_over_source(const Instruction& i) const {
    if (does_nothing(i)) return false;
    for (std::int64_t k = 0; k < i.num_operands(); ++k) {
      if (!reads(source_, values_.of(*i.operand(k)))) continue;
      if (!step_computations(i).empty()) return true;
      const auto pairs = in_place_pairs(i);
      if (std::ranges::find(pairs, k, &InPlacePair::operand) != pairs.end()) return true;
      for (std::int64_t r = 0; r < num_leaves(i.shape()); ++r)
        if (may_overwrite(i, k, r)) return true;
    }
    return false;
  }

  static bool reads(ValueId source, std::span<const ValueId> all) {
    return std::ranges::find(all, source) != all.end();
  }

  const std::vector<Instruction*>& order_;
  const Instruction& copy_;
  const Values& values_;
  const ValueId source_;
};

// What is put into a tuple and taken out again, before it is: the tuple has to wait for others.
Instruction* behind_tuples(Instruction* i) {
  while (i->opcode() == Opcode::GetTupleElement && i->operand(0)->opcode() == Opcode::Tuple)
    i = i->operand(0)->operand(i->tuple_index());
  return i;
}

std::pair<Instruction*, Instruction*> start_and_done(const Instruction& copy, Instruction* source) {
  Computation& c = *copy.parent();
  Instruction* begun =
      c.add(Opcode::CopyStart, Shape::tuple({copy.shape(), source->shape(), Shape::scalar(DType::U32)}), {source},
            copy.name() + ".start");
  return {begun, c.add(Opcode::CopyDone, copy.shape(), {begun}, copy.name() + ".done")};
}

// The fusion is wrapped in a computation.
std::pair<Instruction*, Instruction*> start_and_done(const Instruction& fusion, const std::vector<Instruction*>& sources) {
  Computation& c = *fusion.parent();
  Computation& wrapped = *c.module().add_computation(fusion.name() + ".wrapped");
  std::vector<Instruction*> parameters;
  std::vector<Shape> given;
  for (const Instruction* source : sources) {
    const auto number = static_cast<std::int64_t>(parameters.size());
    parameters.push_back(wrapped.add_parameter(number, source->shape(), source->name()));
    given.push_back(source->shape());
  }
  wrapped.set_root(wrapped.add_clone(fusion, std::move(parameters), fusion.name()));
  Instruction* begun = c.add(Opcode::AsyncStart, Shape::tuple({Shape::tuple(std::move(given)), fusion.shape()}), sources,
                             fusion.name() + ".start");
  begun->set_called({&wrapped});
  return {begun, c.add(Opcode::AsyncDone, fusion.shape(), {begun}, fusion.name() + ".done")};
}

void start(Computation& c, std::vector<Instruction*> order, std::size_t at, const Span& span) {
  Instruction& copy = *order[at];
  std::vector<Instruction*> sources;
  for (Instruction* operand : copy.operands()) sources.push_back(behind_tuples(operand));
  const auto [begun, done] =
      copy.opcode() == Opcode::Fusion ? start_and_done(copy, sources) : start_and_done(copy, sources[0]);
  begun->mutable_annotations().metadata = copy.annotations().metadata;
  for (Instruction* before : copy.control_predecessors()) begun->add_control_predecessor(before);
  for (Instruction* after : copy.control_successors()) after->add_control_predecessor(done);
  copy.drop_control_edges();
  c.replace_uses(&copy, done);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(span.end), done);
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(span.begin), begun);
  c.remove(&copy);
  c.set_order(order);
  c.sort();  // what names the source, before the start
}

// The next copy of the computation from `from` on that is worth it; it becomes two instructions. Returns where to go on.
std::optional<std::size_t> start_next(Computation& c, std::size_t from, const Values& values) {
  std::vector<Instruction*> order;
  for (Instruction& i : c.instructions()) order.push_back(&i);
  for (std::size_t at = from; at < order.size(); ++at) {
    if (!can_be_started(*order[at])) continue;
    const Span span(order, at, values);
    if (span.beside < kStartedBytes) continue;
    start(c, std::move(order), at, span);
    return at + 1;
  }
  return std::nullopt;
}

}  // namespace

bool can_be_started(const Instruction& i) {
  if (!i.shape().is_array()) return false;
  if (i.opcode() == Opcode::Fusion) return i.annotations().decisions.contains("beside");
  if (i.opcode() != Opcode::Copy) return false;
  const Shape& from = i.operand(0)->shape();
  return space_of(from) != space_of(i.shape()) && from.layout().unplaced() == i.shape().layout().unplaced() &&
         leaf_bytes(i.shape()) >= kStartedBytes;
}

void start_copies(hlo::Module& module) {
  for (Computation* c : step_computations(module)) {
    const auto instructions = c->instructions();
    if (std::ranges::none_of(instructions, can_be_started)) continue;
    for (std::optional<std::size_t> next = std::size_t{0}; next;) {
      const Values values(module);
      next = start_next(*c, *next, values);
    }
  }
}

}  // namespace hloom::buffers
