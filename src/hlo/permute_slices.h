// The form of collective-permute that moves slices into arrays that are there: (input, output, input offsets, output offsets).
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"
#include "hloom/error.h"

namespace hloom::hlo {

/// A slice of an array of the input that goes into the array of the same number of the output. Both operands may be one array.
struct PermuteSlice {
  std::int64_t array = 0;
  Dims sizes;
  std::vector<std::int64_t> offsets;  ///< where in operands 2 and 3 the tuple of its offsets stands, one a dimension
};

/// Whether a collective-permute or its start has that form.
bool moves_slices(const Instruction& permute);

/// The slices in the order of slice_sizes. An array has one tuple of integers for its offsets, or a tuple of such tuples for
/// several slices; tuples of arrays have a tuple of those.
/// Needs: moves_slices(). Errors: InvalidArgument if operands and sizes do not fit each other.
Expected<std::vector<PermuteSlice>> permute_slices(const Instruction&);

}  // namespace hloom::hlo
