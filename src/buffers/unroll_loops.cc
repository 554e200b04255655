#include "buffers/unroll_loops.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "buffers/assignment.h"
#include "buffers/insert_copies.h"
#include "buffers/order_readers.h"
#include "buffers/schedule.h"
#include "buffers/start_copies.h"
#include "buffers/steps.h"
#include "buffers/timeline.h"
#include "hlo/inline.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kLeastBytes = 1 << 10;   // copied a step, to do anything about it
constexpr std::int64_t kBytesPerInstruction = 16;  // and for each instruction of the body
constexpr std::int64_t kMostSteps = 4;
constexpr std::size_t kMostAlone = 8;  // loops that are tried one by one

std::vector<Instruction*> loops_of(const hlo::Module& module) {
  std::vector<Instruction*> loops;
  for (Computation* c : step_computations(module))
    for (Instruction& i : c->instructions())
      if (i.opcode() == Opcode::While) loops.push_back(&i);
  return loops;
}

// --- What a loop copies in each step -------------------------------------------------------------------------------

void collect_names(const Computation& c, std::unordered_set<std::string>& names) {
  for (const Instruction& i : c.instructions()) {
    names.insert(i.name());
    for (const Computation* callee : step_computations(i)) collect_names(*callee, names);
  }
}

/// What planning a module as it is gives.
struct Trial {
  std::map<std::string, double> copied;  ///< in one round, by the loop's name; what loops inside copy counts more
  std::int64_t arena_bytes = 0;
};

Trial try_plan(const hlo::Module& module, bool with_starts) {
  const auto trial = module.clone();
  order_readers(*trial);
  schedule(*trial);
  if (with_starts) start_copies(*trial);
  const std::vector<InPlaceDecision> decisions = insert_copies(*trial);
  Trial result;
  if (const auto placed = place(*trial, {.effort = PackEffort::Quick})) result.arena_bytes = placed->arena_bytes();
  const Timeline timeline(*trial);
  for (const Instruction* loop : loops_of(*trial)) {
    std::unordered_set<std::string> inside;
    collect_names(*loop->body(), inside);
    const int depth = timeline.of(*loop->body()).depth;
    double& bytes = result.copied[loop->name()];
    for (const InPlaceDecision& d : decisions) {
      const bool is_carry = d.kind == InPlaceDecision::Kind::LoopCarry && d.at == loop->name();
      if (d.in_place || d.depth < depth || (!is_carry && !inside.contains(d.at))) continue;
      bytes += static_cast<double>(d.bytes) * static_cast<double>(1ll << (3 * std::min(d.depth - depth, 20)));
    }
  }
  return result;
}

std::int64_t num_instructions(const Computation& c) {
  std::int64_t count = c.num_instructions();
  for (const Instruction& i : c.instructions())
    if (i.opcode() == Opcode::Fusion || !step_computations(i).empty())
      for (const Computation* callee : i.called()) count += num_instructions(*callee);
  return count;
}

bool asks_without_effect(const Instruction& loop) {
  return std::ranges::none_of(loop.condition()->instructions(),
                              [](const Instruction& i) { return hlo::has_side_effect(i); });
}

// Without planning: a loop that carries no large array has no large copies.
bool may_copy_much(const Instruction& loop) {
  std::int64_t bytes = 0;
  for (const Shape* leaf : leaves(loop.shape())) bytes += leaf_bytes(*leaf);
  return bytes >= kLeastBytes && asks_without_effect(loop);
}

// Whether some loop's next step needs what is fetched in this one (passes/fetch_ahead).
bool carries_windows(const hlo::Module& module) {
  return std::ranges::any_of(loops_of(module), [](const Instruction* loop) {
    return std::ranges::any_of(loop->body()->root()->operands(), [](const Instruction* next) {
      return next->opcode() == Opcode::Fusion && can_be_started(*next);
    });
  });
}

// --- Unrolling -----------------------------------------------------------------------------------------------------

Computation* giving_on(hlo::Module& module, const Shape& state) {
  Computation* c = module.add_computation("give_on");
  c->add_parameter(0, state, "state");
  return c;
}

// `state` after one more step, or as it is if the loop ends there.
Instruction* step_if_asked(const Instruction& loop, const Computation& step, Instruction* state, Computation& into) {
  hlo::Module& module = into.module();
  Instruction* more = hlo::inline_computation(*loop.condition(), {state}, into);
  Instruction* next = into.add(Opcode::Conditional, loop.shape(), {more, state, state}, loop.name() + ".step");
  next->set_called({module.clone_computation(step, step.name()), giving_on(module, loop.shape())});
  next->mutable_annotations().decisions["rare_branch"] = std::to_string(1);
  return next;
}

// How many rounds there are if all have the same number of steps; 0 if that is not known.
std::int64_t whole_rounds(const Instruction& loop, std::int64_t steps) {
  const auto& decisions = loop.annotations().decisions;
  const auto found = decisions.find("trip_count");
  if (found == decisions.end()) return 0;
  const std::int64_t trips = std::stoll(found->second);
  return trips % steps == 0 ? trips / steps : 0;
}

// Steps share their kernels' computations until unshare_steps().
void unroll(Instruction& loop, std::int64_t steps) {
  hlo::Module& module = loop.parent()->module();
  const std::int64_t rounds = whole_rounds(loop, steps);
  const Computation& step = *loop.body();
  Computation* round = module.clone_computation(step, step.name());
  for (std::int64_t k = 1; k < steps; ++k) {
    Instruction* state = round->root();
    round->set_root(rounds > 0 ? hlo::inline_computation(step, {state}, *round) : step_if_asked(loop, step, state, *round));
  }
  loop.set_called({loop.condition(), round});
  auto& decisions = loop.mutable_annotations().decisions;
  if (rounds > 0)
    decisions["trip_count"] = std::to_string(rounds);
  else
    decisions.erase("trip_count");
  decisions["steps_a_round"] = std::to_string(steps);
}

using Steps = std::map<std::string, std::int64_t>;  // in a round, by the loop's name

Trial try_unrolled(const hlo::Module& module, const Steps& steps, bool with_starts) {
  const auto trial = module.clone();
  for (Instruction* loop : loops_of(*trial))
    if (const auto found = steps.find(loop->name()); found != steps.end()) unroll(*loop, found->second);
  return unshare_steps(*trial) ? try_plan(*trial, with_starts) : Trial();
}

/// Loops that copy much, and for each the bytes a step.
std::map<std::string, double> loops_that_copy(const std::vector<Instruction*>& loops, const Trial& as_it_is) {
  std::map<std::string, double> result;
  for (const Instruction* loop : loops) {
    const std::int64_t much = std::max(kLeastBytes, kBytesPerInstruction * num_instructions(*loop->body()));
    const double bytes = as_it_is.copied.at(loop->name());
    if (may_copy_much(*loop) && bytes >= static_cast<double>(much)) result[loop->name()] = bytes;
  }
  return result;
}

/// Chooses for some loops together how many steps make a round.
class Chooser {
 public:
  Chooser(const hlo::Module& module, const Trial& as_it_is, bool with_starts)
      : module_(module), as_it_is_(as_it_is), with_starts_(with_starts) {}

  /// Nothing if no way fits into the memory.
  Steps choose(const std::map<std::string, double>& copied) const {
    std::map<std::string, double> least;
    for (const auto& [name, bytes] : copied) least[name] = bytes / 2;
    Steps best;
    for (std::int64_t count = 2; count <= kMostSteps; ++count) {
      Steps steps;
      for (const auto& [name, bytes] : least)
        if (bytes >= static_cast<double>(kLeastBytes) / 2) steps[name] = count;
      if (steps.empty()) break;
      const Trial trial = try_unrolled(module_, steps, with_starts_);
      if (!fits(trial)) continue;
      for (const auto& [name, bytes] : trial.copied) {
        if (!steps.contains(name)) continue;
        const double a_step = bytes / static_cast<double>(count);
        if (a_step > least.at(name) || (a_step == least.at(name) && best.contains(name))) continue;
        least[name] = a_step;
        best[name] = count;
      }
    }
    return best;
  }

 private:
  bool fits(const Trial& trial) const {
    return !trial.copied.empty() && trial.arena_bytes <= as_it_is_.arena_bytes + as_it_is_.arena_bytes / 8;
  }

  const hlo::Module& module_;
  const Trial& as_it_is_;
  bool with_starts_;
};

}  // namespace

void unroll_loops(hlo::Module& module, bool with_starts) {
  with_starts = with_starts && carries_windows(module);
  const std::vector<Instruction*> loops = loops_of(module);
  if (std::ranges::none_of(loops, [](const Instruction* loop) { return may_copy_much(*loop); })) return;
  const Trial as_it_is = try_plan(module, with_starts);
  const std::map<std::string, double> copied = loops_that_copy(loops, as_it_is);
  const Chooser chooser(module, as_it_is, with_starts);
  Steps chosen = chooser.choose(copied);
  // Where they do not fit together, one of them may.
  if (chosen.empty() && copied.size() > 1 && copied.size() <= kMostAlone)
    for (const auto& loop : copied)
      if (chosen.empty()) chosen = chooser.choose({loop});
  for (Instruction* loop : loops)
    if (const auto found = chosen.find(loop->name()); found != chosen.end()) unroll(*loop, found->second);
  if (!chosen.empty()) module.remove_unreachable();  // the bodies of single steps
}

}  // namespace hloom::buffers
