#include "passes/remove_markers.h"

#include <algorithm>
#include <array>

#include "passes/make.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

bool is_sharding(std::string_view target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ||
         target.starts_with("xla.sdy.");
}

bool is_wish(std::string_view target) {
  constexpr std::array<std::string_view, 6> kWishes = {
      "LayoutConstraint", "MoveToDevice", "MoveToHost", "PinToDevice", "PinToDeviceSram", "annotate_device_placement"};
  return std::ranges::find(kWishes, target) != kWishes.end();
}

Instruction* marked(Instruction& i) {
  if (!is(&i, Opcode::CustomCall) || i.num_operands() != 1 || !compatible(i.operand(0)->shape(), i.shape()))
    return nullptr;
  const std::string& target = i.attr<hlo::CustomCallAttr>().target;
  const bool drops = is_wish(target) || (is_sharding(target) && i.module().config().num_partitions == 1);
  const bool alike = i.operand(0)->shape() == i.shape();
  if (!drops || (!alike && !i.shape().is_array())) return nullptr;
  // Frontends say that it has effects, so that it stays where they put it.
  i.mutable_attr<hlo::CustomCallAttr>().has_side_effect = false;
  // Else it says where, or in which order, its result lies.
  return alike ? i.operand(0) : Make(i).op(Opcode::Copy, i.shape(), {i.operand(0)});
}

Instruction* behind_barrier(Instruction& i) { return is(&i, Opcode::OptBarrier) ? i.operand(0) : nullptr; }

}  // namespace

Expected<Changed> remove_markers(hlo::Module& module) { return rewrite(module, marked); }
Expected<Changed> remove_barriers(hlo::Module& module) { return rewrite(module, behind_barrier); }

}  // namespace hloom::passes
