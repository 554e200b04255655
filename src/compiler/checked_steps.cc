// What is read and written comes from the instructions and the values that they name; what is needed later is found by
// going backwards. Neither knows how the memory was planned: a plan that gives memory away too early, or takes it from
// something else, is noticed when the value is read.
#include "compiler/checked_steps.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/try.h"
#include "buffers/steps.h"

namespace hloom::compiler {
namespace {

using buffers::ValueId;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using runtime::Slice;
using Set = std::unordered_set<ValueId>;

bool contains(const Slice& whole, const Slice& part) {
  return whole.allocation == part.allocation && whole.offset <= part.offset &&
         part.offset + part.size_bytes <= whole.offset + whole.size_bytes;
}

class Builder {
 public:
  Builder(const Compiled& compiled, const runtime::Program& program)
      : c_(compiled), values_(*compiled.module) {
    const auto& all = c_.assignment.allocations();
    for (std::size_t n = 0; n < all.size(); ++n) {
      const auto is_same = [&](const buffers::Allocation& a) {
        return a.kind == buffers::Allocation::Kind::Result && a.number == all[n].aliased_result;
      };
      const bool aliased = all[n].kind == buffers::Allocation::Kind::Parameter && all[n].aliased_result >= 0;
      same_.push_back(static_cast<std::int32_t>(aliased ? std::ranges::find_if(all, is_same) - all.begin()
                                                        : static_cast<std::ptrdiff_t>(n)));
    }
    std::size_t number = 0;
    runtime::for_each_step(program.steps, [&](const runtime::Step& step) {
      for (const Instruction* i : c_.step_instructions[number]) steps_[i].push_back({&step, number});
      ++number;
    });
  }

  Expected<CheckedProgram> build() {
    CheckedProgram result;
    for (ValueId v = 0; v < static_cast<ValueId>(values_.size()); ++v)
      result.names.push_back(buffers::to_string(values_[v]));
    result.steps = TRY(computation(*c_.module->entry()));
    for (const Instruction* p : c_.module->entry()->parameters()) add_places(*p, result.parameters);
    for (const Computation* c : buffers::step_computations(*c_.module))
      for (const Instruction& i : c->instructions())
        if (i.opcode() == Opcode::Constant) add_places(i, result.constants);
    add_places(*c_.module->entry()->root(), result.results);
    Set live = values_of(*c_.module->entry()->root());
    find_ends(result.steps, live);
    return result;
  }

 private:
  // An array that is donated and returned goes by the result's name.
  Slice slice_of(const buffers::Slice& s) const { return {same(s.allocation), s.offset, s.bytes}; }
  std::int32_t same(std::int32_t allocation) const { return same_[static_cast<std::size_t>(allocation)]; }

  ValuePlace place(const Instruction& i, std::int64_t leaf) const {
    return {values_.of(i, leaf), slice_of(c_.assignment.slice(i, leaf))};
  }
  void add_places(const Instruction& i, std::vector<ValuePlace>& to) const {
    for (std::int64_t leaf = 0; leaf < c_.assignment.num_leaves(i); ++leaf) to.push_back(place(i, leaf));
  }
  Set values_of(const Instruction& i) const {
    const auto values = values_.of(i);
    return {values.begin(), values.end()};
  }

  Expected<CheckedSteps> computation(const Computation& c) {
    CheckedSteps steps;
    for (const Instruction& i : c.instructions()) TRY(add(i, steps));
    return steps;
  }

  Expected<> add(const Instruction& i, CheckedSteps& to) {
    if (i.opcode() == Opcode::Call || i.opcode() == Opcode::AsyncStart) {
      for (CheckedStep& inner : TRY(computation(*i.to_apply()))) to.push_back(std::move(inner));
      return {};
    }
    const bool is_done = buffers::start_of(i) != nullptr;
    if (i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant || (buffers::is_alias(i) && !is_done)) return {};
    CheckedStep step;
    step.instruction = &i;
    TRY(find_steps(i, step));
    switch (i.opcode()) {
      case Opcode::While: TRY(add_loop(i, step)); break;
      case Opcode::Conditional: TRY(add_branches(i, step)); break;
      default: TRY(add_work(i, step)); break;
    }
    to.push_back(std::move(step));
    return {};
  }

  Expected<> find_steps(const Instruction& i, CheckedStep& step) {
    const auto found = steps_.find(&i);
    if (found == steps_.end()) return {};
    for (const Numbered& s : found->second) {
      if (s.number < next_)
        return fail(Code::Internal, i.name(), ": step ", s.number, " runs it before what stands in front of it");
      next_ = s.number + 1;
      step.steps.push_back(s.step);
    }
    return {};
  }

  // A collective writes when it is done.
  Expected<> add_work(const Instruction& i, CheckedStep& step) {
    const Instruction* start = buffers::start_of(i);
    const Instruction& source = start == nullptr ? i : *start;
    for (const Instruction* operand : source.operands()) add_places(*operand, step.reads);
    for (std::int64_t leaf = 0; leaf < c_.assignment.num_leaves(source); ++leaf)
      if (const ValuePlace to = place(source, leaf); values_[to.value].definer == &source && to.at.size_bytes > 0)
        step.writes.push_back(to);
    step.workspace = slice_of(c_.assignment.workspace(i));
    return check_places(step);
  }

  // Constants that the memory's plan does not know, descriptors, are only read.
  Expected<> check_places(const CheckedStep& step) const {
    const auto known = static_cast<std::int32_t>(c_.assignment.allocations().size());
    for (const runtime::Step* s : step.steps) {
      std::vector<Slice> arguments;
      if (const auto* call = std::get_if<runtime::Call>(&s->of)) arguments = call->arguments;
      if (const auto* copy = std::get_if<runtime::Copy>(&s->of)) arguments = {copy->from, copy->to};
      for (std::size_t k = 0; k < arguments.size(); ++k) {
        if (arguments[k].allocation >= known || arguments[k].size_bytes == 0) continue;
        const Slice a{same(arguments[k].allocation), arguments[k].offset, arguments[k].size_bytes};
        const auto is_in = [&](const ValuePlace& p) { return contains(p.at, a); };
        if (contains(step.workspace, a) ||
            std::ranges::any_of(step.reads, is_in) || std::ranges::any_of(step.writes, is_in))
          continue;
        return fail(Code::Internal, step.instruction->name(), ": argument ", k, " is bytes ", a.offset, " to ",
                    a.offset + a.size_bytes, " of memory ", a.allocation, ", where none of its operands or results lies");
      }
    }
    return {};
  }

  bool has(const Instruction& i, std::int64_t leaf) const { return leaf < c_.assignment.num_leaves(i); }

  // Leaves of a loop or conditional that are values of their own.
  template <typename F>
  void for_own(const Instruction& i, const F& visit) const {
    for (std::int64_t leaf = 0; has(i, leaf); ++leaf)
      if (values_[values_.of(i, leaf)].definer == &i) visit(leaf);
  }

  std::vector<CheckedMemory::Rename> renames(const Instruction& from, const Instruction& to) const {
    std::vector<CheckedMemory::Rename> result;
    for_own(to, [&](std::int64_t leaf) {
      result.push_back({values_.of(from, leaf), values_.of(to, leaf), slice_of(c_.assignment.slice(to, leaf))});
    });
    return result;
  }

  // What instructions of a computation, and of those that it runs, make.
  void add_made(const Computation& c, std::vector<ValueId>& to) const {
    for (const Instruction& i : c.instructions()) {
      if (i.opcode() != Opcode::Constant)
        for (const ValueId v : values_.of(i))
          if (values_[v].definer == &i) to.push_back(v);
      for (const Computation* inner : buffers::step_computations(i)) add_made(*inner, to);
    }
  }

  Expected<> add_loop(const Instruction& i, CheckedStep& step) {
    step.enter = renames(*i.operand(0), i);
    step.condition = TRY(computation(*i.condition()));
    step.reads = {place(*i.condition()->root(), 0)};
    CheckedStep::Branch& body = step.branches.emplace_back();
    body.steps = TRY(computation(*i.body()));
    body.leave = renames(*i.body()->root(), i);
    add_made(*i.body(), body.made);
    add_made(*i.condition(), body.made);
    return {};
  }

  Expected<> add_branches(const Instruction& i, CheckedStep& step) {
    step.reads = {place(*i.operand(0), 0)};
    for (const Computation* c : i.called()) {
      CheckedStep::Branch& branch = step.branches.emplace_back();
      branch.steps = TRY(computation(*c));
      branch.leave = renames(*c->root(), i);
      add_made(*c, branch.made);
    }
    return {};
  }

  // --- What is needed behind each step, from the last to the first. `live`: behind them, then before them.

  void find_ends(CheckedSteps& steps, Set& live) {
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (step->instruction->opcode() == Opcode::While)
        find_ends_of_loop(*step, live);
      else if (step->instruction->opcode() == Opcode::Conditional)
        find_ends_of_branches(*step, live);
      else
        find_ends_of_work(*step, live);
    }
  }

  bool may_end(ValueId v) const { return values_[v].kind != buffers::Value::Kind::Constant; }

  void need(ValueId v, CheckedStep& step, Set& live) {
    if (live.insert(v).second && may_end(v)) step.ends.push_back(v);
  }

  void find_ends_of_work(CheckedStep& step, Set& live) {
    for (const ValuePlace& w : step.writes)
      if (live.erase(w.value) == 0) step.ends.push_back(w.value);
    for (const ValuePlace& r : step.reads) need(r.value, step, live);
  }

  // All that steps, and those in them, read.
  static void add_read(const CheckedSteps& steps, Set& to) {
    for (const CheckedStep& step : steps) {
      for (const ValuePlace& r : step.reads) to.insert(r.value);
      for (const CheckedMemory::Rename& r : step.enter) to.insert(r.from);
      add_read(step.condition, to);
      for (const CheckedStep::Branch& b : step.branches) {
        add_read(b.steps, to);
        for (const CheckedMemory::Rename& r : b.leave) to.insert(r.from);
      }
    }
  }

  // What is made outside and read inside is needed until the loop or conditional is over.
  Set read_from_outside(const CheckedStep& step) const {
    Set inside, read;
    for (const CheckedStep::Branch& b : step.branches) inside.insert(b.made.begin(), b.made.end());
    for_own(*step.instruction, [&](std::int64_t leaf) { inside.insert(values_.of(*step.instruction, leaf)); });
    add_read(step.condition, read);
    for (const CheckedStep::Branch& b : step.branches) {
      add_read(b.steps, read);
      for (const CheckedMemory::Rename& r : b.leave) read.insert(r.from);
    }
    for (const ValuePlace& r : step.reads) read.insert(r.value);
    std::erase_if(read, [&](ValueId v) { return inside.contains(v); });
    return read;
  }

  void take_own(const CheckedStep& step, Set& live, Set* taken = nullptr) const {
    for_own(*step.instruction, [&](std::int64_t leaf) {
      const ValueId v = values_.of(*step.instruction, leaf);
      if (live.erase(v) > 0 && taken != nullptr) taken->insert(v);
    });
  }

  void find_ends_of_loop(CheckedStep& step, Set& live) {
    CheckedStep::Branch& body = step.branches[0];
    Set own;
    for_own(*step.instruction, [&](std::int64_t leaf) {
      const ValueId v = values_.of(*step.instruction, leaf);
      if (!live.contains(v)) step.ends.push_back(v);
    });
    take_own(step, live, &own);
    for (const ValueId v : read_from_outside(step)) need(v, step, live);
    // Behind the body: what is outside, and what comes back. The loop's own are made anew by that.
    Set inside = live;
    for (const CheckedMemory::Rename& r : body.leave) inside.insert(r.from);
    find_ends(body.steps, inside);
    // Behind the condition: what the body wants, or who comes after the loop.
    inside.insert(own.begin(), own.end());
    inside.insert(step.reads[0].value);
    find_ends(step.condition, inside);
    // What enters and is read by nobody else has the loop's names from then on.
    for (const CheckedMemory::Rename& r : step.enter)
      if (!live.contains(r.from) && may_end(r.from)) step.entered.push_back(r.from);
    for (const CheckedMemory::Rename& r : step.enter) live.insert(r.from);
  }

  void find_ends_of_branches(CheckedStep& step, Set& live) {
    for_own(*step.instruction, [&](std::int64_t leaf) {
      const ValueId v = values_.of(*step.instruction, leaf);
      if (!live.contains(v)) step.ends.push_back(v);
    });
    take_own(step, live);
    for (const ValueId v : read_from_outside(step)) need(v, step, live);
    for (CheckedStep::Branch& branch : step.branches) {
      Set inside = live;
      for (const CheckedMemory::Rename& r : branch.leave) inside.insert(r.from);
      find_ends(branch.steps, inside);
    }
  }

  const Compiled& c_;
  std::vector<std::int32_t> same_;  // of each allocation, the one whose memory it is
  const buffers::Values values_;
  struct Numbered {
    const runtime::Step* step;
    std::size_t number;
  };
  std::unordered_map<const Instruction*, std::vector<Numbered>> steps_;
  std::size_t next_ = 0;  // number of the step that may come next
};

}  // namespace

Expected<CheckedProgram> checked_program(const Compiled& compiled, const runtime::Program& program) {
  return Builder(compiled, program).build();
}

}  // namespace hloom::compiler
