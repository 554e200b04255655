// Instructions put into a schedule.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hloom::buffers {

/// Collects where new instructions belong, then sets the orders of the computations and removes tuples and elements
/// that lost their users.
class OrderEdits {
 public:
  void insert_before(hlo::Instruction& place, const std::vector<hlo::Instruction*>& added);
  void insert_after(hlo::Instruction& place, const std::vector<hlo::Instruction*>& added);
  void append(hlo::Computation&, const std::vector<hlo::Instruction*>& added);
  void apply();

 private:
  std::unordered_map<const hlo::Instruction*, std::vector<hlo::Instruction*>> before_, after_;
  std::unordered_map<const hlo::Instruction*, bool> is_new_;
  std::vector<hlo::Computation*> changed_;
};

}  // namespace hloom::buffers
