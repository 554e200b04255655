#pragma once

#include <set>
#include <string>
#include <vector>

#include "passes/fused_values.h"
#include "passes/pass.h"
#include "passes/placement.h"

namespace hloom::passes {

/// Writes the memory spaces and splits that a fusion's operands and results have into its computation, and into the
/// fusions in that: onto parameters, roots and all that names the same values, leaf by leaf. Nothing is chosen here.
/// The base of a dynamic-update-slice lies where its result does. What crosses a boundary inside alone lies where it is
/// made; values that meet no boundary keep what they have.
/// A second run finds nothing; the order of instructions does not matter.
/// Errors: InvalidArgument, naming both boundaries, if a value would have to lie in two places; the module is then as
///         it was (separate-memory-spaces puts a copy there); those of FusedValues. Cost: linear.
Expected<Changed> propagate_memory_space(hlo::Module&);
/// For fusions on these execution threads alone. Those in asynchronous computations are on the threads of these.
Expected<Changed> propagate_memory_space(hlo::Module&, const std::set<std::string>& execution_threads);
/// For one fused computation: from its own parameters inwards, and from its root where that is no parameter's value.
/// Nothing outside is looked at or changed.
Expected<Changed> propagate_memory_space(hlo::Computation& fused);

/// A side of a fusion: one leaf of an operand or of the result; for a computation by itself, of a parameter or the root.
struct Boundary {
  const hlo::Instruction* at = nullptr;  ///< the fusion; for a computation by itself the parameter or root
  std::int64_t operand = -1;             ///< -1: the result, or for a computation by itself the instruction
  std::int64_t leaf = 0;
};
std::string to_string(const Boundary&);

/// That a value lies so, and who asks for it.
struct PlacementRequest {
  FusedValues::Id value = 0;
  Placement placement;
  Boundary from;
  hlo::Instruction* through = nullptr;  ///< the update whose base it is, if that is why
};

/// What is asked of a fusion's values from outside, operands first, and of the bases of updates therefrom; then of those
/// that cross boundaries inside alone. A base that lies in the same space already may be split otherwise.
std::vector<PlacementRequest> placement_requests(const hlo::Instruction& fusion, const FusedValues&);

}  // namespace hloom::passes
