// Which elements of its operands an element of an instruction's result reads.
#pragma once

#include <vector>

#include "hlo/instruction.h"
#include "hloom/error.h"
#include "indexing/piecewise.h"

namespace hloom::indexing {

/// What of one operand is read.
struct OperandMap {
  PiecewiseMap map;
  /// False if more may be named than is read: the base of an update at a place that only a run knows, whose window no
  /// box can leave out.
  bool exact = true;
};

/// For each operand a map from the elements of the result; of a tuple, whose arrays all have the same dimensions, from
/// those. Ranges are what is summed up or searched; runtime values name the element that holds them. Elementwise ops,
/// data movement, reduce, reduce-window, dot, convolution, gather, slices and updates, and fusions of them, whose maps
/// are those of all ways through the fusion.
/// Errors: Unimplemented, naming the instruction, where reads cannot be said so: sort, scatter, while, custom calls …
///         ResourceExhausted where one value in a fusion is read through more than `kMaxPieces` maps.
/// Cost: linear in the rank; for fusions in the instructions and their maps.
Expected<std::vector<OperandMap>> operand_maps(const hlo::Instruction&);

inline constexpr std::size_t kMaxPieces = 256;

/// The map of a reshape from an array of `result` dimensions to one of `operand` dimensions: groups of dimensions with
/// equal products are put together and taken apart, each by itself. Needs: equal products.
IndexMap reshape_map(const std::vector<std::int64_t>& result, const std::vector<std::int64_t>& operand);

}  // namespace hloom::indexing
