#include "passes/check_memory_spaces.h"

#include "base/fail.h"
#include "base/try.h"
#include "passes/match.h"
#include "passes/propagate_memory_space.h"

namespace hloom::passes {
namespace {

Expected<> check_side(const Instruction& fusion, std::int64_t operand, const Shape& outside, const Instruction& inside) {
  const auto out = leaves(outside), in = leaves(inside.shape());
  for (std::size_t n = 0; n < out.size(); ++n) {
    const Placement there = placement_of(*out[n]), here = placement_of(*in[n]);
    if (!(there == here))
      return fail(Code::FailedPrecondition, fusion.name(), ": ",
                  to_string(Boundary{&fusion, operand, static_cast<std::int64_t>(n)}), " is in ", to_string(there), ", ",
                  inside.name(), " of its computation in ", to_string(here),
                  "; propagate-memory-space makes them agree");
  }
  return {};
}

}  // namespace

Expected<> check_memory_spaces(const hlo::Module& module) {
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) {
      if (!is(&i, Opcode::Fusion)) continue;
      for (std::int64_t k = 0; k < i.num_operands(); ++k)
        TRY(check_side(i, k, i.operand(k)->shape(), *i.called(0)->parameter(k)));
      TRY(check_side(i, -1, i.shape(), *i.called(0)->root()));
    }
  return {};
}

}  // namespace hloom::passes
