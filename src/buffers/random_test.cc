// Laws over random programs: plans hold, every copy is needed, planted faults are found.
#include <random>

#include "buffers/order_readers.h"
#include "buffers/schedule.h"
#include "buffers/test_plan.h"
#include "buffers/values.h"
#include "text/print.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Module;
using hlo::Opcode;

/// Makes programs of arrays of one shape with loops, branches, calls and window updates, nested up to a depth.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed), module_(std::make_unique<Module>("m")) {}

  std::unique_ptr<Module> run() {
    entry_ = module_->add_computation("e");
    std::vector<Instruction*> arrays;
    const std::int64_t parameters = 1 + below(4);
    for (std::int64_t k = 0; k < parameters; ++k) arrays.push_back(entry_->add_parameter(k, kArray));
    fill(*entry_, arrays, 3 + below(8), 2);
    const std::int64_t results = 1 + below(4);
    std::vector<Instruction*> roots;
    for (std::int64_t k = 0; k < results; ++k) roots.push_back(any(arrays));
    entry_->set_root(entry_->add_tuple(roots, "result"));
    module_->set_entry(entry_);
    donate(parameters, results);
    module_->sort();
    return std::move(module_);
  }

 private:
  static inline const Shape kArray = Shape::array(DType::F32, {512});  // large enough that loops are unrolled
  static inline const Shape kIndex = Shape::scalar(DType::S32);

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  Instruction* any(const std::vector<Instruction*>& of) { return of[static_cast<std::size_t>(below(std::ssize(of)))]; }

  void donate(std::int64_t parameters, std::int64_t results) {
    for (std::int64_t k = 0; k < std::min(parameters, results); ++k) {
      if (below(3) == 0)
        module_->config().aliases.push_back({{k}, (k + 1) % parameters, {}, false});
      else if (below(6) == 0 && module_->config().aliases.empty())
        module_->config().donors.push_back({k, {}});
    }
    if (!module_->config().donors.empty()) module_->config().aliases.clear();
  }

  Instruction* constant(Computation& c, const Shape& shape) { return c.add_constant(hlo::Literal(shape)); }

  void fill(Computation& c, std::vector<Instruction*>& arrays, std::int64_t count, int depth) {
    for (std::int64_t k = 0; k < count; ++k) arrays.push_back(one(c, arrays, depth));
  }

  Instruction* one(Computation& c, const std::vector<Instruction*>& arrays, int depth) {
    switch (below(depth > 0 ? 11 : 7)) {
      case 0: return c.add(Opcode::Negate, kArray, {any(arrays)});
      case 1: return c.add(Opcode::Add, kArray, {any(arrays), any(arrays)});
      case 2: {
        Instruction* r = c.add(Opcode::Reverse, kArray, {any(arrays)});
        r->set_dimensions({0});
        return r;
      }
      case 3: return constant(c, kArray);
      case 4:
      case 5: return update(c, any(arrays), any(arrays));
      case 6: return c.add(Opcode::Bitcast, kArray, {any(arrays)});
      case 7:
      case 8: return loop(c, arrays, depth - 1);
      case 9: return branch(c, arrays, depth - 1);
      default: return call(c, arrays, depth - 1);
    }
  }

  // A window of one array written into another.
  Instruction* update(Computation& c, Instruction* base, Instruction* from) {
    Instruction* at = constant(c, kIndex);
    Instruction* window = c.add(Opcode::DynamicSlice, Shape::array(DType::F32, {4}), {from, at});
    window->mutable_attr<hlo::DynamicSliceAttr>().sizes = {4};
    return c.add(Opcode::DynamicUpdateSlice, kArray, {base, window, at});
  }

  Instruction* loop(Computation& c, const std::vector<Instruction*>& arrays, int depth) {
    std::vector<Instruction*> init;
    std::vector<Shape> shapes;
    for (std::int64_t k = 2 + below(3); k > 0; --k) {
      init.push_back(any(arrays));
      shapes.push_back(kArray);
    }
    const Shape carried = Shape::tuple(shapes);
    Computation* condition = module_->add_computation("cond");
    Instruction* p = condition->add_parameter(0, carried);
    Instruction* x = condition->add_get_tuple_element(p, below(std::ssize(shapes)));
    Instruction* zero = constant(*condition, Shape::scalar(DType::F32));
    Instruction* at = condition->add(Opcode::Reshape, Shape::array(DType::F32, {1}), {zero});
    Instruction* first = condition->add(Opcode::Slice, Shape::array(DType::F32, {1}), {x});
    first->mutable_attr<hlo::SliceAttr>() = {{0}, {1}, {1}};
    Instruction* less = condition->add(Opcode::Compare, Shape::array(DType::Pred, {1}), {first, at});
    condition->set_root(condition->add(Opcode::Reshape, Shape::scalar(DType::Pred), {less}));
    Computation* body = module_->add_computation("body");
    Instruction* q = body->add_parameter(0, carried);
    std::vector<Instruction*> inner;
    for (std::size_t k = 0; k < shapes.size(); ++k)
      inner.push_back(body->add_get_tuple_element(q, static_cast<std::int64_t>(k)));
    fill(*body, inner, below(5), depth);
    std::vector<Instruction*> next;
    for (std::size_t k = 0; k < shapes.size(); ++k) next.push_back(any(inner));
    body->set_root(body->add_tuple(next));
    Instruction* w = c.add(Opcode::While, carried, {c.add_tuple(init)});
    w->set_called({condition, body});
    return c.add_get_tuple_element(w, below(std::ssize(shapes)));
  }

  Computation* callee(int depth, std::int64_t parameters, const char* name) {
    Computation* f = module_->add_computation(name);
    std::vector<Instruction*> arrays;
    for (std::int64_t k = 0; k < parameters; ++k) arrays.push_back(f->add_parameter(k, kArray));
    fill(*f, arrays, below(4), depth);
    f->set_root(any(arrays));
    return f;
  }

  Instruction* branch(Computation& c, const std::vector<Instruction*>& arrays, int depth) {
    const std::int64_t count = 1 + below(3);
    std::vector<Instruction*> operands{constant(c, kIndex)};
    std::vector<Computation*> branches;
    for (std::int64_t k = 0; k < count; ++k) {
      operands.push_back(any(arrays));
      branches.push_back(callee(depth, 1, "branch"));
    }
    Instruction* i = c.add(Opcode::Conditional, kArray, operands);
    i->set_called(branches);
    return i;
  }

  Instruction* call(Computation& c, const std::vector<Instruction*>& arrays, int depth) {
    Instruction* i = c.add(Opcode::Call, kArray, {any(arrays), any(arrays)});
    i->set_called({callee(depth, 2, "callee")});
    return i;
  }

  std::mt19937 random_;
  std::unique_ptr<Module> module_;
  Computation* entry_ = nullptr;
};

// Values that decide what the program gives: its results, what they are made from, and what loops and branches ask.
std::vector<bool> observed_values(const Module& module, const Values& values) {
  std::vector<bool> observed(static_cast<std::size_t>(values.size()));
  std::vector<ValueId> list;
  const auto observe = [&](std::span<const ValueId> of) {
    for (const ValueId v : of)
      if (!observed[static_cast<std::size_t>(v)]) {
        observed[static_cast<std::size_t>(v)] = true;
        list.push_back(v);
      }
  };
  observe(values.of(*module.entry()->root()));
  for (const Computation* c : step_computations(module))
    for (const Instruction& i : c->instructions()) {
      if (i.opcode() == Opcode::While) observe(values.of(*i.condition()->root()));
      if (i.opcode() == Opcode::Conditional) observe(values.of(*i.operand(0)));
    }
  while (!list.empty()) {
    const Value& v = values[list.back()];
    list.pop_back();
    observe(v.inputs);
    if (v.kind == Value::Kind::Made)
      for (const Instruction* operand : v.definer->operands()) observe(values.of(*operand));
  }
  return observed;
}

TEST(RandomPrograms, PlansHoldAndEveryCopyIsNeeded) {
  std::int64_t copies = 0, in_place = 0, unrolled = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    auto module = Maker(seed).run();
    ASSERT_TRUE(hlo::check_module(*module)) << hlo::check_module(*module).error().message();
    const Plan p = plan_module(std::move(module));
    const auto found = check_assignment(p.assignment);
    ASSERT_TRUE(found.empty()) << found.front() << "\n" << text::print(*p.module);
    const Values values(*p.module);
    const std::vector<bool> observed = observed_values(*p.module, values);
    for (const Instruction* copy : p.copies())
      ASSERT_TRUE(!observed[static_cast<std::size_t>(values.of(*copy, 0))] ||
                  !check_assignment(p.assignment, copy).empty())
          << copy->name() << " is not needed\n"
          << text::print(*p.module);
    ASSERT_TRUE(hlo::check_module(*p.module)) << hlo::check_module(*p.module).error().message();
    copies += std::ssize(p.copies());
    for (const auto& d : p.assignment.decisions()) in_place += d.in_place ? 1 : 0;
    for (const Computation* c : step_computations(*p.module))
      for (const Instruction& i : c->instructions()) unrolled += i.annotations().decisions.contains("steps_a_round");
  }
  EXPECT_GT(copies, 500);
  EXPECT_GT(in_place, 500);
  EXPECT_GT(unrolled, 100);
}

// A block that one instruction writes.
bool is_simple(const ArenaBlock& b) {
  return b.values.size() == 1 && b.definer->opcode() != Opcode::While && b.definer->opcode() != Opcode::Conditional;
}

TEST(RandomPrograms, BlocksMovedOntoOthersAreMissed) {
  int planted = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    const Plan p = plan_module(Maker(seed).run());
    for (const ArenaBlock& a : p.assignment.blocks())
      for (const ArenaBlock& b : p.assignment.blocks()) {
        std::int64_t together = 0;
        for (const Interval& i : intersection(a.live, b.live)) together += i.end - i.begin;
        // Where one point is shared, it may be one that operand and result may share.
        if (&a == &b || a.allocation != 0 || b.allocation != 0 || a.bytes != b.bytes || together < 2 || !is_simple(a) || !is_simple(b)) continue;
        Assignment moved = p.assignment;
        for (const Computation* c : step_computations(*p.module))
          for (const Instruction& i : c->instructions())
            for (std::int64_t leaf = 0; leaf < moved.num_leaves(i); ++leaf)
              if (moved.slice(i, leaf) == Slice{0, a.offset, a.bytes}) moved.set_slice(i, leaf, {0, b.offset, a.bytes});
        ASSERT_FALSE(check_assignment(moved).empty()) << a.values[0] << " onto " << b.values[0] << "\n"
                                                      << text::print(*p.module);
        ++planted;
      }
  }
  EXPECT_GT(planted, 200);
}

TEST(RandomPrograms, SchedulesAreLegalAndNoWorse) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    auto module = Maker(seed).run();
    ASSERT_TRUE(unshare_steps(*module));
    order_readers(*module);
    for (Computation* c : step_computations(*module)) c->sort();
    const std::int64_t before = peak_bytes(*module->entry());
    schedule(*module);
    EXPECT_LE(peak_bytes(*module->entry()), before);
    EXPECT_TRUE(hlo::check_module(*module)) << hlo::check_module(*module).error().message();
    const std::string once = text::print(*module);
    schedule(*module);
    EXPECT_EQ(text::print(*module), once);
  }
}

}  // namespace
}  // namespace hloom::buffers
