#include "passes/bitcast_reshapes.h"

#include "passes/make.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

Instruction* to_bitcast(Instruction& i) {
  if (!is(&i, Opcode::Reshape) || !is_plain(i)) return nullptr;
  return Make(i).op(Opcode::Bitcast, i.shape(), {i.operand(0)});
}

}  // namespace

Expected<Changed> bitcast_reshapes(hlo::Module& module) { return rewrite(module, to_bitcast); }

}  // namespace hloom::passes
