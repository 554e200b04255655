// Which instructions and computations do more than give a value.
#pragma once

#include <unordered_map>

#include "hlo/module.h"

namespace hloom::passes {

/// hlo::has_side_effect() with what each computation answers kept, so that a whole module costs linear time.
/// Holds while no computation gains or loses an effect.
class Effects {
 public:
  bool of(const hlo::Instruction&);
  bool of(const hlo::Computation&);

 private:
  std::unordered_map<const hlo::Computation*, bool> known_;
};

}  // namespace hloom::passes
