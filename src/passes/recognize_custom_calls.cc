#include "passes/recognize_custom_calls.h"

namespace hloom::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool is_top_k(const Instruction& i) {
  if (i.opcode() != Opcode::CustomCall || i.attr<hlo::CustomCallAttr>().target != "TopK") return false;
  if (i.num_operands() != 1 || !i.shape().is_tuple() || i.shape().elements().size() != 2) return false;
  const Shape& values = i.shape().element(0);
  const Shape& indices = i.shape().element(1);
  return values.is_array() && values.rank() > 0 && indices.dtype() == DType::S32 && same_dims(values, indices) &&
         i.operand(0)->shape().rank() == values.rank() && i.operand(0)->shape().dtype() == values.dtype();
}

}  // namespace

Expected<Changed> recognize_custom_calls(hlo::Module& module) {
  auto changed = Changed::No;
  for (hlo::Computation& computation : module.computations())
    for (Instruction* i : computation.post_order()) {
      if (!is_top_k(*i)) continue;
      const Shape& values = i->shape().element(0);
      Instruction* top = computation.add(Opcode::Topk, i->shape(), {i->operand(0)}, i->name());
      top->mutable_attr<hlo::TopKAttr>().k = values.dim(values.rank() - 1);
      computation.replace_uses(i, top);
      changed = Changed::Yes;
    }
  return changed;
}

}  // namespace hloom::passes
