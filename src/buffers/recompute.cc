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
#include "buffers/timeline.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kMostInstructions = 16;  // of what is still cheap to make
constexpr std::int64_t kLeastBytes = 4 << 10;   // of what is worth a try
constexpr int kMostTries = 48, kMostTriesWithoutLimit = 16;
constexpr int kMostInVain = 3;                  // tries one after the other, without a limit
constexpr std::int64_t kMostPlanned = 8000;     // instructions in all plans that are tried, without a limit
constexpr std::int64_t kShareOfWork = 32;       // of a run, that may be done again without a limit
constexpr std::int64_t kFlopsAByte = 8;         // done in the time in which a byte is moved

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

bool is_given(const Instruction& i) { return i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant; }

bool is_always_there(const Instruction& argument) {
  const Instruction* i = &argument;
  while (is_alias(*i) && i->num_operands() == 1) i = i->operand(0);
  return is_given(*i);
}

bool is_small(const Shape& shape, std::int64_t bytes) { return shape.is_array() && leaf_bytes(shape) * 8 <= bytes; }

bool is_cheap_to_make(const Instruction& i) {
  if (i.opcode() != Opcode::Fusion || !i.shape().is_array() || !in_place_pairs(i).empty()) return false;
  const Computation& fused = *i.called(0);
  const std::int64_t bytes = leaf_bytes(i.shape());
  const auto is_cheap_here = [&](const Instruction& inner) {
    return is_cheap(inner.opcode()) || (is_elementwise(inner.opcode()) && is_small(inner.shape(), bytes));
  };
  return bytes >= kLeastBytes && fused.num_instructions() <= kMostInstructions && i.control_successors().empty() &&
         std::ranges::all_of(fused.instructions(), is_cheap_here);
}

double work_inside(const Instruction& i) {
  double flops = 0;
  if (i.opcode() == Opcode::Dot) {
    flops = 2.0 * static_cast<double>(i.shape().num_elements());
    for (const std::int64_t d : i.attr<hlo::DotAttr>().lhs_contracting)
      flops *= static_cast<double>(i.operand(0)->shape().dim(d));
  } else if (i.opcode() == Opcode::Convolution) {
    const Shape& kernel = i.operand(1)->shape();
    const std::int64_t features = kernel.dim(i.attr<hlo::ConvolutionAttr>().dims.kernel_output);
    flops = 2.0 * static_cast<double>(i.shape().num_elements()) *
            static_cast<double>(kernel.num_elements() / std::max<std::int64_t>(features, 1));
  }
  return flops / kFlopsAByte;
}

// Of one run of it, in bytes moved.
double work_of(const Instruction& i) {
  double work = 0;
  for (const Instruction* operand : i.operands())
    for (const Shape* leaf : leaves(operand->shape())) work += static_cast<double>(leaf_bytes(*leaf));
  for (const Shape* leaf : leaves(i.shape())) work += static_cast<double>(leaf_bytes(*leaf));
  if (i.opcode() != Opcode::Fusion) return work + work_inside(i);
  for (const Instruction& inner : i.called(0)->instructions()) work += work_inside(inner);
  return work;
}

/// A module as it would be planned.
struct Trial {
  std::unique_ptr<hlo::Module> module;
  Assignment assignment;
};

std::optional<Trial> try_plan(const hlo::Module& module) {
  auto trial = module.clone();
  auto assignment = finish(*trial, {.place = {.effort = PackEffort::Quick}});
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
  Recompute(hlo::Module& module, std::int64_t limit_bytes) : module_(module), limit_(limit_bytes) {}

  void run() {
    if (!has_candidates()) return;
    for (const Computation* c : step_computations(module_)) num_instructions_ += c->num_instructions();
    std::optional<Trial> now = try_plan(module_);
    if (now) work_left_ = work_of_all(*now) / kShareOfWork;
    const auto go_on = [&] {
      std::optional<Trial> better = now ? improve(*now) : std::nullopt;
      if (better) now = std::move(better);
      return better.has_value();
    };
    while (go_on()) continue;
    if (limit_ <= 0 || !now || now->assignment.total_bytes() <= limit_) return;
    is_pressed_ = true;
    tried_.clear();
    while (now->assignment.total_bytes() > limit_ && go_on()) continue;
  }

 private:
  bool has_candidates() const {
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions())
        if (is_cheap_to_make(i) && i.users().size() > 1) return true;
    return false;
  }

  static double work_of_all(const Trial& trial) {
    const Timeline timeline(*trial.module);
    double work = 0;
    for (const Computation* c : step_computations(*trial.module))
      for (const Instruction& i : c->instructions())
        if (!is_alias(i) && !is_given(i) && step_computations(i).empty()) work += work_of(i) * timeline.of(*c).runs;
    return work;
  }

  // The first of the peak's owners, the largest first, that lowers the arena when made again.
  std::optional<Trial> improve(const Trial& now) {
    const MemoryReport peak = report(now.assignment);
    if (peak.peak_at == nullptr) return std::nullopt;
    const Named named = by_name(module_);
    const auto at = named.find(peak.peak_at->name());
    if (at == named.end()) return std::nullopt;
    const Timeline timeline(*now.module);
    for (const ArenaBlock* owner : peak.owners) {
      const Instruction* definer = owner->definer;
      if (definer == nullptr || is_enough() || definer->parent() != peak.peak_at->parent()) continue;
      const auto found = named.find(definer->name());
      if (found == named.end() || !is_cheap_to_make(*found->second)) continue;
      const double work = work_of(*definer) * timeline.of(*definer->parent()).runs;
      if (!is_pressed_ && work > work_left_) continue;
      if (!tried_.insert({definer->name(), at->first}).second) continue;
      auto trial = make_again(*found->second, *at->second, now);
      if (!trial) continue;
      in_vain_ = 0;
      work_left_ -= work;
      return trial;
    }
    return std::nullopt;
  }

  bool is_enough() const {
    if (is_pressed_) return tries_ >= kMostTries;
    return tries_ >= kMostTriesWithoutLimit || in_vain_ >= kMostInVain || tries_ * num_instructions_ > kMostPlanned;
  }

  using Places = std::unordered_map<std::string, std::int64_t>;

  // Of the instructions of the peak's computation in the order of the trial, by name.
  static Places places(const Instruction& peak, const Trial& now) {
    Places places;
    for (const Computation* c : step_computations(*now.module)) {
      Places here;
      for (const Instruction& i : c->instructions()) here.emplace(i.name(), static_cast<std::int64_t>(here.size()));
      if (here.contains(peak.name())) places = std::move(here);
    }
    return places;
  }

  // Who reads `value` behind the peak.
  static std::vector<Instruction*> late_readers(const Instruction& value, const Instruction& peak, const Places& at) {
    std::vector<Instruction*> late;
    for (Instruction* user : value.users()) {
      const auto place = at.find(user->name());
      if (place != at.end() && place->second > at.at(peak.name()) && !is_alias(*user)) late.push_back(user);
    }
    return late;
  }

  static std::int64_t last_use(const Instruction& value, const Places& at) {
    std::int64_t last = -1;
    for (const Instruction* user : value.users()) {
      if (user->is_root()) return INT64_MAX;
      const auto place = at.find(user->name());
      last = std::max(last, is_alias(*user) ? last_use(*user, at) : place == at.end() ? -1 : place->second);
    }
    return last;
  }

  // Whether what it is made of is small, or kept anyway until the last of these.
  static bool has_all_at_hand(const Instruction& value, const std::vector<Instruction*>& late, const Places& at) {
    std::int64_t end = 0;
    for (const Instruction* reader : late) end = std::max(end, at.at(reader->name()));
    return std::ranges::all_of(value.operands(), [&](const Instruction* o) {
      return is_always_there(*o) || is_small(o->shape(), leaf_bytes(value.shape())) || last_use(*o, at) >= end;
    });
  }

  std::optional<Trial> make_again(Instruction& value, Instruction& peak, const Trial& now) {
    const Places at = places(peak, now);
    const std::vector<Instruction*> late = late_readers(value, peak, at);
    if (late.empty() || &value == &peak || !has_all_at_hand(value, late, at)) return std::nullopt;
    ++tries_;
    ++in_vain_;
    Computation& c = *value.parent();
    Instruction* again = c.add_clone(value, value.operands());
    again->set_called({module_.clone_computation(*value.called(0), value.called(0)->name())});
    again->add_control_predecessor(&peak);
    for (Instruction* reader : late)
      for (std::int64_t k = 0; k < reader->num_operands(); ++k)
        if (reader->operand(k) == &value) reader->replace_operand(k, again);
    c.sort();
    std::optional<Trial> trial = try_plan(module_);
    const std::int64_t before = now.assignment.arena_bytes(), enough = is_pressed_ ? before : before - before / 256;
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
  bool is_pressed_ = false;  // more is taken than the limit
  double work_left_ = 0;     // that may be done again otherwise
  int tries_ = 0, in_vain_ = 0;
  std::int64_t num_instructions_ = 0;  // that run as steps
  std::set<std::pair<std::string, std::string>> tried_;  // value and peak
};

}  // namespace

void recompute_cheap_values(hlo::Module& module, std::int64_t limit_bytes) {
  if (!module.config().is_scheduled) Recompute(module, limit_bytes).run();
}

}  // namespace hloom::buffers
