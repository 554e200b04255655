#include "kernels/plan_dot.h"

namespace hloom::kernels {

bool is_dot_fusion(const hlo::Instruction&) { return false; }
Expected<Kernel> plan_dot(const hlo::Instruction& fusion, const VectorUnit&) { return plan_fusion(fusion); }
Expected<> plan_dot_into(Builder& b, const hlo::Instruction& fusion, const Places& places, const VectorUnit&) {
  return plan_fusion_into(b, fusion, places);
}

}  // namespace hloom::kernels
