#include "passes/expand_structure.h"

#include "base/try.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

Expected<Instruction*> operand(Instruction& i) { return i.operand(0); }
Expected<Instruction*> zero(Instruction& i) { return Make(i).integer(i.shape().dtype(), 0); }

}  // namespace

Expected<Changed> expand_structure(hlo::Module& module) {
  auto changed = TRY(expand(module, Opcode::Domain, operand));
  if (module.config().replica_count == 1) {
    const Changed one = TRY(expand(module, Opcode::ReplicaId, zero));
    changed |= one;
  }
  if (module.config().num_partitions == 1) {
    const Changed one = TRY(expand(module, Opcode::PartitionId, zero));
    changed |= one;
  }
  return changed;
}

}  // namespace hloom::passes
