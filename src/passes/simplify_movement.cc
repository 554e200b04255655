#include "passes/simplify_movement.h"

#include "passes/rewrite.h"
#include "passes/simplify_rules.h"

namespace hloom::passes {
namespace {

Instruction* simplify(Instruction& i) {
  if (!is_plain(i)) return nullptr;
  switch (i.opcode()) {
    case Opcode::Constant: return rules::constant(i);
    case Opcode::Iota: return rules::iota(i);
    case Opcode::Reshape: return rules::reshape(i);
    case Opcode::Broadcast: return rules::broadcast(i);
    case Opcode::Transpose: return rules::transpose(i);
    case Opcode::Reverse: return rules::reverse(i);
    case Opcode::Slice: return rules::slice(i);
    case Opcode::Pad: return rules::pad(i);
    case Opcode::Concatenate: return rules::concatenate(i);
    case Opcode::DynamicSlice: return rules::dynamic_slice(i);
    case Opcode::DynamicUpdateSlice: return rules::dynamic_update_slice(i);
    case Opcode::Select: return rules::select_of_update(i);
    case Opcode::Gather: return rules::gather(i);
    case Opcode::Scatter: return rules::scatter(i);
    case Opcode::Reduce: return rules::reduce(i);
    case Opcode::Sort: return rules::sort(i);
    case Opcode::Dot: return rules::dot(i);
    case Opcode::GetDimensionSize: return rules::dimension_size(i);
    default: return nullptr;
  }
}

}  // namespace

Expected<Changed> simplify_movement(hlo::Module& module) { return rewrite(module, simplify); }

}  // namespace hloom::passes
