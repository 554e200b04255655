#include "passes/remove_dead.h"

#include "passes/liveness.h"

namespace hloom::passes {

Expected<Changed> remove_dead(hlo::Module& module) {
  std::int64_t removed = module.remove_unreachable();
  Liveness liveness(module);
  for (hlo::Computation& computation : module.computations())
    removed += remove_dead_instructions(computation, liveness);
  removed += module.remove_unreachable();
  return removed > 0 ? Changed::Yes : Changed::No;
}

}  // namespace hloom::passes
