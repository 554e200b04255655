#include "passes/effects.h"

#include <algorithm>

namespace hloom::passes {
namespace {

// What the instruction itself does, whatever it calls.
bool own_effect(const hlo::Instruction& i) {
  if (i.called().empty()) return hlo::has_side_effect(i);
  if (const auto* call = i.attributes().get_if<hlo::CustomCallAttr>()) return call->has_side_effect;
  if (const auto* collective = i.attributes().get_if<hlo::CollectiveAttr>()) return collective->channel_id.has_value();
  return false;
}

}  // namespace

bool Effects::of(const hlo::Computation& computation) {
  const auto found = known_.find(&computation);
  if (found != known_.end()) return found->second;
  const bool effect = std::ranges::any_of(computation.instructions(), [&](const hlo::Instruction& i) { return of(i); });
  known_.emplace(&computation, effect);
  return effect;
}

bool Effects::of(const hlo::Instruction& i) {
  return own_effect(i) || std::ranges::any_of(i.called(), [&](const hlo::Computation* c) { return of(*c); });
}

}  // namespace hloom::passes
