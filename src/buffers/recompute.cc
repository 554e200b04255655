#include "buffers/recompute.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "buffers/assignment.h"
#include "buffers/in_place.h"
#include "buffers/report.h"
#include "buffers/steps.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kMostInstructions = 16;  // of what is still cheap to make
constexpr std::int64_t kLeastBytes = 4 << 10;   // of what is worth a try
constexpr int kMostTries = 48, kMostTriesWithoutLimit = 16;

bool is_cheap(Opcode opcode) {
  switch (opcode) {
    case Opcode::Abs:
    case Opcode::Add:
    case Opcode::And:
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
    case Opcode::Broadcast:
    case Opcode::Clamp:
    case Opcode::Compare:
    case Opcode::Constant:
    case Opcode::Convert:
    case Opcode::Iota:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Multiply:
    case Opcode::Negate:
    case Opcode::Not:
    case Opcode::Or:
    case Opcode::Parameter:
    case Opcode::Reshape:
    case Opcode::Select:
    case Opcode::Slice:
    case Opcode::Subtract:
    case Opcode::Transpose:
    case Opcode::Xor: return true;
    default: return false;
  }
}

// Kept for the whole computation, or small beside what is made of it.
bool is_at_hand(const Instruction& argument, std::int64_t bytes) {
  const Instruction* i = &argument;
  while (is_alias(*i) && i->num_operands() == 1) i = i->operand(0);
  if (i->opcode() == Opcode::Parameter || i->opcode() == Opcode::Constant) return true;
  return argument.shape().is_array() && leaf_bytes(argument.shape()) * 8 <= bytes;
}

bool is_cheap_to_make(const Instruction& i) {
  if (i.opcode() != Opcode::Fusion || !i.shape().is_array() || !in_place_pairs(i).empty()) return false;
  const Computation& fused = *i.called(0);
  const std::int64_t bytes = leaf_bytes(i.shape());
  return bytes >= kLeastBytes && fused.num_instructions() <= kMostInstructions && i.control_successors().empty() &&
         std::ranges::all_of(fused.instructions(), [](const Instruction& inner) { return is_cheap(inner.opcode()); }) &&
         std::ranges::all_of(i.operands(), [&](const Instruction* o) { return is_at_hand(*o, bytes); });
}

/// A module as it would be planned.
struct Trial {
  std::unique_ptr<hlo::Module> module;
  Assignment assignment;
};

std::optional<Trial> try_plan(const hlo::Module& module) {
  auto trial = module.clone();
  auto assignment = finish(*trial, PackEffort::Quick);
  if (!assignment) return std::nullopt;
  return Trial{std::move(trial), *std::move(assignment)};
}

using Named = std::unordered_map<std::string, Instruction*>;

Named by_name(const hlo::Module& module) {
  Named named;
  for (const Computation* c : step_computations(module))
    for (Instruction& i : c->instructions()) named.emplace(i.name(), &i);
  return named;
}

class Recompute {
 public:
  Recompute(hlo::Module& module, std::int64_t limit_bytes)
      : module_(module), limit_(limit_bytes), most_tries_(limit_bytes > 0 ? kMostTries : kMostTriesWithoutLimit) {}

  void run() {
    if (!has_candidates()) return;
    std::optional<Trial> now = try_plan(module_);
    while (now && now->assignment.total_bytes() > limit_ && tries_ < most_tries_) {
      std::optional<Trial> better = improve(*now);
      if (!better) return;
      now = std::move(better);
    }
  }

 private:
  bool has_candidates() const {
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions())
        if (is_cheap_to_make(i) && i.users().size() > 1) return true;
    return false;
  }

  // The first of the peak's owners, the largest first, that lowers the arena when made again.
  std::optional<Trial> improve(const Trial& now) {
    const MemoryReport peak = report(now.assignment);
    if (peak.peak_at == nullptr) return std::nullopt;
    const Named named = by_name(module_);
    const auto at = named.find(peak.peak_at->name());
    if (at == named.end()) return std::nullopt;
    for (const ArenaBlock* owner : peak.owners) {
      const Instruction* definer = owner->definer;
      if (definer == nullptr || tries_ >= most_tries_ || definer->parent() != peak.peak_at->parent()) continue;
      const auto found = named.find(definer->name());
      if (found == named.end() || !tried_.insert({definer->name(), at->first}).second) continue;
      if (!is_cheap_to_make(*found->second)) continue;
      ++tries_;
      if (auto trial = make_again(*found->second, *at->second, now)) return trial;
    }
    return std::nullopt;
  }

  // Who reads `value` behind the peak in the order of the trial.
  std::vector<Instruction*> late_readers(const Instruction& value, const Instruction& peak, const Trial& now) const {
    std::vector<Instruction*> late;
    std::set<std::string> behind;
    bool is_behind = false;
    for (const Computation* c : step_computations(*now.module))
      for (const Instruction& i : c->instructions()) {
        if (i.name() == peak.name())
          is_behind = true;
        else if (is_behind && i.parent()->root() != nullptr)
          behind.insert(i.name());
        if (&i == i.parent()->root()) is_behind = false;
      }
    for (Instruction* user : value.users())
      if (behind.contains(user->name()) && !is_alias(*user)) late.push_back(user);
    return late;
  }

  std::optional<Trial> make_again(Instruction& value, Instruction& peak, const Trial& now) {
    const std::vector<Instruction*> late = late_readers(value, peak, now);
    if (late.empty() || &value == &peak) return std::nullopt;
    Computation& c = *value.parent();
    Instruction* again = c.add_clone(value, value.operands());
    again->set_called({module_.clone_computation(*value.called(0), value.called(0)->name())});
    again->add_control_predecessor(&peak);
    for (Instruction* reader : late)
      for (std::int64_t k = 0; k < reader->num_operands(); ++k)
        if (reader->operand(k) == &value) reader->replace_operand(k, again);
    c.sort();
    std::optional<Trial> trial = try_plan(module_);
    const std::int64_t before = now.assignment.arena_bytes(), enough = limit_ > 0 ? before : before - before / 256;
    if (trial && trial->assignment.arena_bytes() < enough) {
      if (value.users().empty()) {
        value.drop_control_edges();
        c.remove(&value);
      }
      return trial;
    }
    for (Instruction* reader : late)
      for (std::int64_t k = 0; k < reader->num_operands(); ++k)
        if (reader->operand(k) == again) reader->replace_operand(k, &value);
    again->drop_control_edges();
    c.remove(again);
    return std::nullopt;
  }

  hlo::Module& module_;
  std::int64_t limit_;
  int most_tries_;
  int tries_ = 0;
  std::set<std::pair<std::string, std::string>> tried_;  // value and peak
};

}  // namespace

void recompute_cheap_values(hlo::Module& module, std::int64_t limit_bytes) {
  if (!module.config().is_scheduled) Recompute(module, limit_bytes).run();
}

}  // namespace hloom::buffers
