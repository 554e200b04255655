// Which instructions a module needs.
#pragma once

#include <vector>

#include "passes/effects.h"

namespace hloom::passes {

/// The instructions that a computation's root, side effects and parameters need, control predecessors included.
class Liveness {
 public:
  explicit Liveness(const hlo::Module& module) : live_(static_cast<std::size_t>(module.num_ids())) {}

  /// Marks what `computation` needs. Cost: linear in it.
  void mark(const hlo::Computation& computation);
  /// Of a marked computation's instruction.
  bool is_live(const hlo::Instruction& i) const {
    return static_cast<std::size_t>(i.id()) < live_.size() && live_[static_cast<std::size_t>(i.id())];
  }
  Effects& effects() { return effects_; }

 private:
  std::vector<bool> live_;
  Effects effects_;
};

/// Removes what is not live, and bridges its control edges. For passes that leave no valid dead instructions; the
/// others leave them to the pass remove_dead. Returns how many.
std::int64_t remove_dead_instructions(hlo::Computation&, Liveness&);

}  // namespace hloom::passes
