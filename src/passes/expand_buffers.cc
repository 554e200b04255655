#include "passes/expand_buffers.h"

#include "base/try.h"
#include "hlo/buffer_shapes.h"
#include "passes/expand.h"

namespace hloom::passes {
namespace {

using hlo::holds_buffer, hlo::without_buffers;

void make_arrays(Instruction& i) {
  i.set_shape(without_buffers(i.shape()));
  if (!is(&i, Opcode::CustomCall)) return;
  auto& call = i.mutable_attr<hlo::CustomCallAttr>();
  if (call.target == "CreateBuffer") call.target = "AllocateBuffer";
  if (call.operand_layouts)
    for (Shape& operand : *call.operand_layouts) operand = without_buffers(std::move(operand));
}

Expected<Instruction*> held(Instruction& i) {
  const std::string& target = i.attr<hlo::CustomCallAttr>().target;
  return target == "Pin" || target == "Unpin" ? i.operand(0) : nullptr;
}

}  // namespace

Expected<Changed> expand_buffers(hlo::Module& module) {
  auto changed = Changed::No;
  for (hlo::Computation& c : module.computations())
    for (Instruction& i : c.instructions()) {
      if (!holds_buffer(i.shape())) continue;
      make_arrays(i);
      changed = Changed::Yes;
    }
  if (!any(changed)) return changed;
  const Changed replaced = TRY(expand(module, Opcode::CustomCall, held));
  return changed | replaced;
}

}  // namespace hloom::passes
