#include "kernels/plan_region.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "buffers/parts.h"
#include "hlo/packing.h"
#include "kernels/plan_dot.h"
#include "kernels/plan_packing.h"

namespace hloom::kernels {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

class RegionPlanner {
 public:
  RegionPlanner(Builder& builder, const PlaceOf& place, const VectorUnit& unit, const PlanCalled& called)
      : b_(builder), place_(place), unit_(unit), called_(called) {}

  Expected<> steps(std::span<const Instruction* const> list) {
    for (const Instruction* i : list) TRY(step(*i));
    return {};
  }

 private:
  Expected<> step(const Instruction& i) {
    if (i.annotations().decisions.contains("forks")) return call(i);
    switch (i.opcode()) {
      case Opcode::Fusion: return buffers::is_free(i) ? Expected<>() : fusion(i);
      case Opcode::Copy: return copy(i);
      case Opcode::While: return loop(i);
      case Opcode::Conditional: return branch(i);
      case Opcode::Call: return steps(steps_of(*i.to_apply()));
      case Opcode::Parameter:
      case Opcode::Constant:
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
      case Opcode::Bitcast:
      case Opcode::AfterAll:
      case Opcode::AddDependency:
      case Opcode::OptBarrier: return {};
      default: return fail(Code::Unimplemented, i.name(), ": ", i.opcode(), " inside a region");
    }
  }

  Places places(const Instruction& i) const {
    Places p;
    for (const Instruction* operand : i.operands())
      for (std::int64_t leaf = 0; leaf < num_leaves(operand->shape()); ++leaf)
        p.operands.push_back(place_(*operand, leaf));
    for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) p.results.push_back(place_(i, leaf));
    return p;
  }

  // What the callee writes is known no more.
  Expected<> call(const Instruction& i) {
    const Places p = places(i);
    const CalledKernel called = TRY(called_(i, p));
    std::vector<std::string>& callees = b_.kernel().callees;
    Call statement;
    statement.callee = static_cast<int>(callees.size());
    callees.push_back(called.name);
    for (const std::vector<Place>* all : {&p.operands, &p.results})
      for (const Place& place : *all) statement.arguments.push_back({place.argument, place.byte_offset});
    statement.blocks = called.blocks;
    statement.scratch_bytes = called.scratch_bytes;
    b_.forget_loads();
    for (const Place& place : p.results)
      b_.forget_stored(place.argument, place.byte_offset, place.byte_offset + place.shape.size_bytes());
    b_.append(Statement{std::move(statement)});
    return {};
  }

  Expected<> fusion(const Instruction& i) {
    b_.forget_loads();
    return is_dot_fusion(i) ? plan_dot_into(b_, i, places(i), unit_) : plan_fusion_into(b_, i, places(i));
  }

  // Each leaf, unless it is there already.
  Expected<> copy(const Instruction& i) {
    const Places p = places(i);
    for (std::size_t leaf = 0; leaf < p.results.size(); ++leaf) {
      const Place& from = p.operands[leaf];
      const Place& to = p.results[leaf];
      if (!to.shape.is_array() || (from.argument == to.argument && from.byte_offset == to.byte_offset)) continue;
      b_.forget_loads();
      copy_array(from, to);
    }
    return {};
  }

  // Of one layout.
  void copy_bytes(const Place& from, const Place& to) {
    const Index x = index_of(b_.begin_loop(0, to.shape.size_bytes()));
    const Value v = b_.load_linear(from.argument, x + from.byte_offset, DType::U8);
    b_.store_linear(to.argument, x + to.byte_offset, v);
    b_.end_loop();
  }

  void copy_array(const Place& from, const Place& to) {
    const std::int64_t n = to.shape.num_elements();
    if (n == 0) return;
    if (changes_packing(from.shape, to.shape)) return plan_packing_into(b_, from, to);
    if (hlo::packed_bits(to.shape) != 0) return copy_bytes(from, to);
    std::vector<Index> point(static_cast<std::size_t>(to.shape.rank()));
    if (n == 1) return b_.store(to, point, b_.load(from, point));
    const std::int64_t width = byte_width(to.shape.dtype());
    const bool same_layout = from.shape.layout().minor_to_major == to.shape.layout().minor_to_major;
    std::size_t loops = 0;
    if (same_layout) {
      const std::int64_t lanes = std::min<std::int64_t>(
          std::min<std::int64_t>(256 / width, 128), static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n))));
      const Index x = index_of(b_.begin_loop(0, n, static_cast<int>(lanes)));
      const Value v = b_.load_linear(from.argument, x + from.byte_offset / width, to.shape.dtype());
      b_.forget_stored(to.argument, to.byte_offset, to.byte_offset + to.shape.size_bytes());
      b_.store_linear(to.argument, x + to.byte_offset / width, v);
      return b_.end_loop();
    }
    const auto& order = to.shape.layout().minor_to_major;
    for (auto d = order.rbegin(); d != order.rend(); ++d, ++loops)
      point[static_cast<std::size_t>(*d)] = index_of(b_.begin_loop(0, to.shape.dim(*d)));
    b_.store(to, point, b_.load(from, point));
    while (loops-- > 0) b_.end_loop();
  }

  Value scalar(const Instruction& i) {
    const Place p = place_(i, 0);
    return b_.load(p, std::vector<Index>(static_cast<std::size_t>(p.shape.rank())));
  }

  // The carried scalars go round in registers; their memory is kept up to date beside.
  Expected<> loop(const Instruction& i) {
    const Computation& body = *i.body();
    While statement;
    std::vector<std::int64_t> carried;
    for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf)
      if (is_register(place_(i, leaf).shape)) carried.push_back(leaf);
    b_.forget_loads();
    std::vector<Value> initial;
    for (const std::int64_t leaf : carried) initial.push_back(load_place(place_(i, leaf)));
    b_.begin_block();
    b_.forget_all_stored();
    for (std::size_t k = 0; k < carried.size(); ++k) {
      Carry carry;
      carry.initial = initial[k];
      carry.inside = b_.define(b_.type(initial[k]));
      statement.carries.push_back(carry);
      b_.set_stored(place_(i, carried[k]), carry.inside);
    }
    b_.forget_loads();
    TRY(steps(steps_of(*i.condition())));
    statement.predicate = scalar(*i.condition()->root());
    statement.condition = b_.end_block();
    b_.forget_loads();
    b_.begin_block();
    b_.forget_all_stored();
    for (std::size_t k = 0; k < carried.size(); ++k) b_.set_stored(place_(i, carried[k]), statement.carries[k].inside);
    TRY(steps(steps_of(body)));
    b_.forget_loads();
    for (std::size_t k = 0; k < carried.size(); ++k) statement.carries[k].next = load_place(place_(i, carried[k]));
    statement.body = b_.end_block();
    b_.forget_loads();
    for (Carry& carry : statement.carries) carry.result = b_.define(b_.type(carry.initial));
    for (std::size_t k = 0; k < carried.size(); ++k) b_.set_stored(place_(i, carried[k]), statement.carries[k].result);
    b_.append(Statement{std::move(statement)});
    return {};
  }

  static bool is_register(const Shape& shape) { return shape.is_array() && shape.num_elements() == 1; }

  Value load_place(const Place& p) { return b_.load(p, std::vector<Index>(static_cast<std::size_t>(p.shape.rank()))); }

  Expected<> branch(const Instruction& i) {
    b_.forget_loads();
    If statement;
    statement.selector = scalar(*i.operand(0));
    if (b_.type(statement.selector) != DType::Pred)
      statement.selector = b_.line(Opcode::Convert, DType::S64, {statement.selector});
    for (const Computation* callee : i.called()) {
      b_.begin_block();
      b_.forget_loads();
      TRY(steps(steps_of(*callee)));
      statement.branches.push_back(b_.end_block());
    }
    b_.forget_loads();
    b_.append(Statement{std::move(statement)});
    return {};
  }

  Builder& b_;
  const PlaceOf& place_;
  const VectorUnit unit_;
  const PlanCalled& called_;
};

}  // namespace

std::vector<const Instruction*> steps_of(const Computation& computation) {
  std::vector<const Instruction*> steps;
  for (const Instruction& i : computation.instructions()) steps.push_back(&i);
  return steps;
}

Expected<> plan_steps_into(Builder& builder, std::span<const Instruction* const> steps, const PlaceOf& place,
                           const VectorUnit& unit, const PlanCalled& called) {
  return RegionPlanner(builder, place, unit, called).steps(steps);
}

Kernel plan_copy(const hlo::Instruction& copy) {
  constexpr std::int64_t kBlockBytes = 64 << 10;
  const Shape& to = copy.shape();
  const std::int64_t n = to.num_elements(), width = byte_width(to.dtype());
  const std::int64_t blocks = std::max<std::int64_t>(1, (n * width + kBlockBytes - 1) / kBlockBytes);
  Builder b(copy.name());
  b.kernel().arguments = {argument_of(copy.operand(0)->shape(), "a0", false), argument_of(to, "y0", true)};
  const Index x = index_of(b.begin_loop(0, n, static_cast<int>(std::min<std::int64_t>(256 / width, 128)),
                                        blocks > 1 ? kBlockBytes / width : 0));
  b.store_linear(1, x, b.load_linear(0, x, to.dtype()));
  b.end_loop();
  Kernel kernel = std::move(b).finish();
  kernel.blocks = blocks;
  kernel.block_cost = 2 * n * width / blocks;
  return kernel;
}

}  // namespace hloom::kernels
