// What run-time sizes mean for each opcode, on arrays as large as their bounds.
#pragma once

#include <functional>
#include <vector>

#include "passes/make.h"

namespace hloom::passes {

/// For each dimension of an array a scalar s32, or null where the size is the dimension's.
using DimSizes = std::vector<Instruction*>;

/// An array with bounds for dimensions and what of it counts; results of several arrays: one after the other.
struct Sized {
  Instruction* value = nullptr;
  std::vector<DimSizes> sizes;
};

/// The sizes of an array operand.
using SizesOf = std::function<DimSizes(const Instruction*)>;

/// The shape without dynamic dimensions, bounds in their places.
Shape with_bounds(const Shape&);
bool is_dynamic(const Shape&);  ///< or some array in it is

/// `x` where index d is below sizes[d] in each dimension, else `fill`.
Instruction* masked(Make&, Instruction* x, const DimSizes& sizes, Instruction* fill);

/// Does `i` on arrays of the bounds, so that nothing past a run-time size reaches what counts of the result.
/// Needs: an instruction that is no control flow and makes no tuple of its operands.
/// Errors: Unimplemented, naming the instruction, if there is no such form.
Expected<Sized> apply_sizes(Instruction& i, const SizesOf& sizes_of);

}  // namespace hloom::passes
