// A region: many small instructions, with their loops and branches, as one kernel.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/plan_dot.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// Where leaf `leaf` (depth first) of an instruction's value lives.
using PlaceOf = std::function<Place(const hlo::Instruction&, std::int64_t leaf)>;

/// A kernel that a region calls.
struct CalledKernel {
  std::string name;
  std::int64_t blocks = 1;
  std::int64_t scratch_bytes = 0;  ///< for each worker
};
/// Plans the kernel of an instruction for itself: its arguments are the leaves of operands and results, at these places.
using PlanCalled = std::function<Expected<CalledKernel>(const hlo::Instruction&, const Places&)>;

/// Adds the work of instructions, in order: fusions, copies, and while, conditional and call with all that they
/// hold. Structural instructions do nothing. Scalars that one stores and another reads stay in registers.
/// Dots are cut for `unit`. Fusions and copies with decisions["forks"] become calls of what `called` plans. Errors: Unimplemented, naming an instruction that has no kernel.
Expected<> plan_steps_into(Builder&, std::span<const hlo::Instruction* const> steps, const PlaceOf&,
                           const VectorUnit& unit = {}, const PlanCalled& called = {});

/// The kernel of a copy between arrays of one layout, in blocks. Needs: plain storage, whole bytes.
Kernel plan_copy(const hlo::Instruction& copy);

/// The instructions of a computation in order.
std::vector<const hlo::Instruction*> steps_of(const hlo::Computation&);

}  // namespace hloom::kernels
