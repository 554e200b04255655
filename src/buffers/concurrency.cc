#include "buffers/concurrency.h"

#include <algorithm>
#include <bitset>

#include "base/check.h"
#include "buffers/steps.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

/// Steps one behind the other, with what each of them needs.
struct Concurrency::Run {
  using Before = std::bitset<kMostReach>;  // bit k: the step k + 1 in front
  struct Step {
    const Instruction* instruction = nullptr;
    bool is_large = false;
    Before needs;
  };
  std::vector<Step> steps;
  std::unordered_map<const Instruction*, std::size_t> places;

  void clear() {
    steps.clear();
    places.clear();
  }
};

namespace {

bool is_large(const Instruction& i, const Values& values) {
  std::int64_t bytes = 0;
  for (const Instruction* operand : i.operands())
    for (const ValueId v : values.of(*operand)) bytes += values[v].bytes;
  for (const ValueId v : values.of(i)) bytes += values[v].bytes;
  return bytes >= Concurrency::kLargeBytes;
}

bool takes_no_time(const Instruction& i) {
  return is_alias(i) || i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant;
}

}  // namespace

Concurrency::Concurrency(const Flow& flow, int reach)
    : flow_(flow), beside_(static_cast<std::size_t>(flow.module().num_ids())) {
  HLOOM_CHECK(reach <= kMostReach);
  for (const Computation* c : step_computations(flow.module())) look_at(*c, reach);
}

void Concurrency::look_at(const Computation& c, int reach) {
  Run run;
  for (const Instruction& i : c.instructions()) {
    if (takes_no_time(i)) continue;
    if (step_computations(i).empty())
      add(i, run, reach);
    else
      run.clear();
  }
}

void Concurrency::add(const Instruction& i, Run& run, int reach) {
  const Values& values = flow_.values();
  const std::size_t here = run.steps.size();
  Run::Step step{&i, is_large(i, values), {}};
  const auto needs = [&](const Instruction& before) {
    const auto found = run.places.find(&before);
    if (found == run.places.end()) return;
    const std::size_t distance = here - found->second;
    if (distance > kMostReach) return;
    step.needs.set(distance - 1);
    step.needs |= run.steps[found->second].needs << distance;
  };
  for (const Instruction* operand : i.operands())
    for (const ValueId v : values.of(*operand)) needs(*values[v].definer);
  for (const Instruction* before : i.control_predecessors()) needs(*before);
  for (std::size_t k = 0; step.is_large && k < std::min(here, static_cast<std::size_t>(reach)); ++k) {
    const Run::Step& other = run.steps[here - 1 - k];
    if (!other.is_large || step.needs[k]) continue;
    beside_[static_cast<std::size_t>(i.id())].push_back(flow_.timeline().of(*other.instruction).work());
    beside_[static_cast<std::size_t>(other.instruction->id())].push_back(flow_.timeline().of(i).work());
    pairs_.emplace_back(other.instruction, &i);
  }
  run.places.emplace(&i, here);
  run.steps.push_back(std::move(step));
}

template <typename F>
void Concurrency::for_steps(const std::vector<NodeId>& nodes, const F& f) const {
  for (const NodeId n : nodes) {
    if (flow_.is_result(n)) continue;
    const Value& value = flow_.values()[n];
    if (value.kind == Value::Kind::Made) f(*value.definer);
    for (const Use& use : flow_.uses(n))
      if (const Instruction* reader = flow_.timeline().at(use.point)) f(*reader);
  }
}

namespace {

Neighbours to_neighbours(std::vector<Point> used, std::vector<Point> beside) {
  const auto intervals = [](const std::vector<Point>& points) {
    std::vector<Interval> parts;
    for (const Point p : points) parts.push_back({p, p + 1});
    return Intervals(std::move(parts));
  };
  return {intervals(used), intervals(beside)};
}

}  // namespace

Neighbours Concurrency::neighbours(const Instruction& step) const {
  return to_neighbours({flow_.timeline().of(step).work()}, beside(step));
}

Neighbours Concurrency::neighbours(const std::vector<NodeId>& nodes) const {
  if (pairs_.empty()) return {};
  std::vector<Point> used, all;
  for_steps(nodes, [&](const Instruction& step) {
    if (beside(step).empty()) return;
    used.push_back(flow_.timeline().of(step).work());
    all.insert(all.end(), beside(step).begin(), beside(step).end());
  });
  return to_neighbours(used, all);
}

bool Concurrency::is_beside(const Instruction& writer, const std::vector<NodeId>& nodes) const {
  if (beside(writer).empty()) return false;
  const Point work = flow_.timeline().of(writer).work();
  bool found = false;
  for_steps(nodes, [&](const Instruction& step) { found |= std::ranges::find(beside(step), work) != beside(step).end(); });
  return found;
}

namespace {

struct Uses {
  std::vector<Slice> read, written;
};

Uses uses_of(const Instruction& i, const Assignment& assignment) {
  Uses uses;
  for (const Instruction* operand : i.operands())
    for (std::int64_t leaf = 0; leaf < assignment.num_leaves(*operand); ++leaf)
      uses.read.push_back(assignment.slice(*operand, leaf));
  for (std::int64_t leaf = 0; leaf < assignment.num_leaves(i); ++leaf)
    uses.written.push_back(assignment.slice(i, leaf));
  uses.written.push_back(assignment.workspace(i));
  return uses;
}

bool meet(const std::vector<Slice>& a, const std::vector<Slice>& b) {
  return std::ranges::any_of(a, [&](const Slice& x) {
    return std::ranges::any_of(b, [&](const Slice& y) {
      return x.allocation == y.allocation && std::max(x.offset, y.offset) < std::min(x.offset + x.bytes, y.offset + y.bytes);
    });
  });
}

}  // namespace

PairCounts count_pairs(const Assignment& assignment) {
  const Flow flow(assignment.module());
  const Concurrency concurrency(flow, Concurrency::kMostReach);
  PairCounts counts;
  for (const auto& [before, behind] : concurrency.pairs()) {
    const Uses a = uses_of(*before, assignment), b = uses_of(*behind, assignment);
    ++counts.all;
    counts.kept_apart += meet(a.written, b.read) || meet(a.written, b.written) || meet(a.read, b.written) ? 1 : 0;
  }
  return counts;
}

}  // namespace hloom::buffers
