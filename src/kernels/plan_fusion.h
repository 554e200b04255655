// From a fused computation to the statements of a kernel: loops over boxes of its results.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/builder.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Where a fusion's operands and results live: a place for each leaf, depth first.
struct Places {
  std::vector<Place> operands;
  std::vector<Place> results;
};

/// Where leaf `leaf` of a fusion's operand `n` lies. Needs: places of that fusion.
const Place& operand_place(const hlo::Instruction& fusion, const Places&, std::int64_t n, const ShapeIndex& leaf);

/// One array that a fusion writes: leaf `leaf` of an instruction of its computation, and where it goes.
struct Root {
  const hlo::Instruction* instruction = nullptr;
  ShapeIndex leaf;
  Place place;
  bool in_place = false;  ///< a window update whose result is the memory of its base
};

/// Plans the kernel of a fusion: arguments are its operands' leaves, then its results' leaves, at their layouts. A
/// result that a window update or a scatter writes in place is the same memory as its base (the caller sees to it).
/// Errors: Unimplemented, naming the instruction that has no kernel.
Expected<Kernel> plan_fusion(const hlo::Instruction& fusion);

/// Adds the statements of a fusion to a kernel that is being built, for a region: no grid.
Expected<> plan_fusion_into(Builder&, const hlo::Instruction& fusion, const Places&);

}  // namespace hloom::kernels
