// What gather and scatter share: index vectors in an array, and which dimension of a window goes where.
#pragma once

#include <cstdint>

#include "hlo/attributes.h"
#include "hlo/literal.h"

namespace hloom::interp {

using hlo::Dims;

/// The index vectors of start_indices: one for each place of the batch, along index_vector_dim.
class IndexVectors {
 public:
  /// `map`: the operand's dimension of each component. Dimension operand_batching[j] of the operand starts at the batch
  /// coordinate of dimension indices_batching[j] of the indices.
  IndexVectors(const hlo::Literal& indices, std::int64_t index_vector_dim, const Dims& map,
               const Dims& operand_batching, const Dims& indices_batching);
  /// The indices' dimensions without index_vector_dim.
  const Dims& batch_sizes() const { return batch_sizes_; }
  /// The start in the operand for this place of the batch, not clamped. Needs: an operand of this rank.
  Dims start(const Dims& batch, std::size_t operand_rank) const;

 private:
  const hlo::Literal& indices_;
  const Dims &map_, &operand_batching_;
  Dims batch_sizes_, batch_strides_;
  Dims batching_places_;  // in the batch, of each of indices_batching
  std::int64_t vector_stride_ = 1;
};

/// Which dimensions of a gather's result (a scatter's update) are of the window, and to which of the operand they
/// belong.
struct WindowDims {
  /// `window` of `rank` dimensions are the window's; in order they belong to the operand's dimensions that are in
  /// neither of the other two lists.
  WindowDims(std::int64_t rank, const Dims& window, std::int64_t operand_rank, const Dims& collapsed,
             const Dims& batching);
  Dims window, operand, batch;
};

}  // namespace hloom::interp
