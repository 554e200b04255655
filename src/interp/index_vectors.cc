#include "interp/index_vectors.h"

#include <algorithm>

#include "interp/index.h"
#include "interp/starts.h"

namespace hloom::interp {
namespace {

bool contains(const Dims& list, std::int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

}  // namespace

std::int64_t start_index(const hlo::Literal& indices, std::int64_t i) {
  const std::int64_t index = hlo::element_as_int64(indices, i);
  return indices.dtype() == DType::U64 && index < 0 ? INT64_MAX : index;
}

IndexVectors::IndexVectors(const hlo::Literal& indices, std::int64_t index_vector_dim, const Dims& map,
                           const Dims& operand_batching, const Dims& indices_batching)
    : indices_(indices), map_(map), operand_batching_(operand_batching) {
  const Dims& dims = indices.shape().dims();
  const Dims strides = row_major(dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<std::int64_t>(d) == index_vector_dim) {
      vector_stride_ = strides[d];
      continue;
    }
    batch_sizes_.push_back(dims[d]);
    batch_strides_.push_back(strides[d]);
  }
  for (const std::int64_t d : indices_batching) batching_places_.push_back(d < index_vector_dim ? d : d - 1);
}

Dims IndexVectors::start(const Dims& batch, std::size_t operand_rank) const {
  Dims start(operand_rank, 0);
  const std::int64_t first = position(batch, batch_strides_);
  for (std::size_t k = 0; k < map_.size(); ++k)
    start[static_cast<std::size_t>(map_[k])] =
        start_index(indices_, first + static_cast<std::int64_t>(k) * vector_stride_);
  for (std::size_t j = 0; j < operand_batching_.size(); ++j)
    start[static_cast<std::size_t>(operand_batching_[j])] = batch[static_cast<std::size_t>(batching_places_[j])];
  return start;
}

WindowDims::WindowDims(std::int64_t rank, const Dims& window_dims, std::int64_t operand_rank, const Dims& collapsed,
                       const Dims& batching)
    : window(window_dims) {
  for (std::int64_t d = 0; d < rank; ++d)
    if (!contains(window, d)) batch.push_back(d);
  for (std::int64_t d = 0; d < operand_rank; ++d)
    if (!contains(collapsed, d) && !contains(batching, d)) operand.push_back(d);
}

}  // namespace hloom::interp
