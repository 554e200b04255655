// gather and scatter, hlo-ops 6.3 and 6.4. Both read windows of an array at places that an index array gives;
// scatter's lists have the same meaning as gather's under other names.
#include "hlo/infer_rules.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

struct Lists {
  const Dims& window_dims;    // in the gathered array: offset_dims, update_window_dims
  const Dims& dropped_dims;   // of the array: collapsed_slice_dims, inserted_window_dims
  const Dims& batching_dims;  // of the array
  const Dims& indices_batching_dims;
  const Dims& index_map;      // start_index_map, scatter_dims_to_operand_dims
  std::int64_t vector_dim;
};

struct Names {
  std::string_view window_dims, dropped_dims, batching_dims, indices_batching_dims, index_map;
};

constexpr Names kGatherNames{"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                             "start_indices_batching_dims", "start_index_map"};
constexpr Names kScatterNames{"update_window_dims", "inserted_window_dims", "input_batching_dims",
                              "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"};

Expected<> check_lists(const Instruction& i, const Shape& array, const Shape& indices, const Lists& l,
                       const Names& names) {
  if (!is_integral(indices.dtype())) return wrong(i, "indices must be integers, found ", indices);
  if (l.vector_dim < 0 || l.vector_dim > indices.rank())
    return wrong(i, "index_vector_dim ", l.vector_dim, " must lie in [0, ", indices.rank(), "]");
  const std::int64_t length = l.vector_dim == indices.rank() ? 1 : indices.dim(l.vector_dim);
  if (static_cast<std::int64_t>(l.index_map.size()) != length)
    return wrong(i, names.index_map, " has ", l.index_map.size(), " entries for index vectors of length ", length);
  TRY(want_distinct(i, l.index_map, array.rank(), names.index_map));
  TRY(want_sorted(i, l.dropped_dims, array.rank(), names.dropped_dims));
  TRY(want_sorted(i, l.batching_dims, array.rank(), names.batching_dims));
  for (const std::int64_t d : l.batching_dims) {
    if (contains(l.dropped_dims, d))
      return wrong(i, "dimension ", d, " stands in ", names.dropped_dims, " and ", names.batching_dims);
    if (contains(l.index_map, d))
      return wrong(i, "dimension ", d, " stands in ", names.index_map, " and ", names.batching_dims);
  }
  TRY(want_distinct(i, l.indices_batching_dims, indices.rank(), names.indices_batching_dims));
  if (l.indices_batching_dims.size() != l.batching_dims.size())
    return wrong(i, names.batching_dims, " and ", names.indices_batching_dims, " must be equally long");
  for (std::size_t k = 0; k < l.batching_dims.size(); ++k) {
    const std::int64_t of_array = l.batching_dims[k], of_indices = l.indices_batching_dims[k];
    if (of_indices == l.vector_dim) return wrong(i, names.indices_batching_dims, " names index_vector_dim");
    if (array.dim(of_array) != indices.dim(of_indices))
      return wrong(i, "batching dimension ", of_array, " (", array.dim(of_array), ") and dimension ", of_indices,
                   " of the indices (", indices.dim(of_indices), ") must be equal");
  }
  if (static_cast<std::int64_t>(l.window_dims.size() + l.dropped_dims.size() + l.batching_dims.size()) != array.rank())
    return wrong(i, names.window_dims, ", ", names.dropped_dims, " and ", names.batching_dims, " must count ",
                 array.rank(), " dimensions");
  return {};
}

// Dimensions of the indices without the one that holds index vectors.
Dims batch_dims(const Shape& indices, std::int64_t vector_dim) { return remaining_dims(indices, {vector_dim}); }

Dims window_dims_of_array(const Shape& array, const Lists& l) {
  Dims kept;
  for (std::int64_t d = 0; d < array.rank(); ++d)
    if (!contains(l.dropped_dims, d) && !contains(l.batching_dims, d)) kept.push_back(d);
  return kept;
}

}  // namespace

Expected<Shape> infer_gather(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape &array = i.operand(0)->shape(), &indices = i.operand(1)->shape();
  const auto& a = i.attr<GatherAttr>();
  const Lists lists{a.offset_dims,     a.collapsed_slice_dims, a.operand_batching_dims, a.start_indices_batching_dims,
                    a.start_index_map, a.index_vector_dim};
  TRY(check_lists(i, array, indices, lists, kGatherNames));
  if (static_cast<std::int64_t>(a.slice_sizes.size()) != array.rank())
    return wrong(i, "slice_sizes has ", a.slice_sizes.size(), " entries for an operand of rank ", array.rank());
  for (std::int64_t d = 0; d < array.rank(); ++d) {
    const std::int64_t size = a.slice_sizes[static_cast<std::size_t>(d)];
    const bool dropped = contains(a.collapsed_slice_dims, d) || contains(a.operand_batching_dims, d);
    const std::int64_t most = dropped ? std::min<std::int64_t>(1, array.dim(d)) : array.dim(d);
    if (size < 0 || (array.dim(d) != Shape::kUnbounded && size > most))
      return wrong(i, "slice size ", size, " of dimension ", d, " must lie in [0, ", most, "]");
  }
  const Dims batch = batch_dims(indices, a.index_vector_dim), window = window_dims_of_array(array, lists);
  const auto rank = static_cast<std::int64_t>(batch.size() + window.size());
  if (rank > Shape::kMaxRank) return wrong(i, "result has more than ", Shape::kMaxRank, " dimensions");
  TRY(want_sorted(i, a.offset_dims, rank, "offset_dims"));
  Shape result = Shape::array(array.dtype(), Dims(static_cast<std::size_t>(rank)));
  std::size_t next_window = 0, next_batch = 0;
  for (std::int64_t d = 0; d < rank; ++d) {
    if (contains(a.offset_dims, d)) {
      const std::int64_t from = window[next_window++];
      result.set_dim(d, a.slice_sizes[static_cast<std::size_t>(from)]);
      result.set_dynamic_dim(d, array.is_dynamic_dim(from) && result.dim(d) == array.dim(from));
    } else {
      const std::int64_t from = batch[next_batch++];
      result.set_dim(d, indices.dim(from));
      result.set_dynamic_dim(d, indices.is_dynamic_dim(from));
    }
  }
  return result;
}

namespace {

Expected<> check_updates(const Instruction& i, const Shape& array, const Shape& indices, const Shape& updates,
                         const Lists& lists) {
  const Dims batch = batch_dims(indices, lists.vector_dim), window = window_dims_of_array(array, lists);
  const auto rank = static_cast<std::int64_t>(batch.size() + window.size());
  if (updates.rank() != rank) return wrong(i, "updates ", updates, " must have rank ", rank);
  TRY(want_sorted(i, lists.window_dims, rank, "update_window_dims"));
  std::size_t next_window = 0, next_batch = 0;
  for (std::int64_t d = 0; d < rank; ++d) {
    if (contains(lists.window_dims, d)) {
      const std::int64_t most = array.dim(window[next_window++]);
      if (most != Shape::kUnbounded && updates.dim(d) > most)
        return wrong(i, "window dimension ", d, " of the updates (", updates.dim(d), ") exceeds the input's (", most,
                     ")");
    } else if (const std::int64_t size = indices.dim(batch[next_batch++]); size != updates.dim(d)) {
      return wrong(i, "dimension ", d, " of the updates (", updates.dim(d), ") must be the indices' (", size, ")");
    }
  }
  return {};
}

}  // namespace

Expected<Shape> infer_scatter(const Instruction& i) {
  if (i.num_operands() < 3 || i.num_operands() % 2 == 0)
    return wrong(i, "scatter takes N inputs, indices and N updates, found ", i.num_operands(), " operands");
  TRY(want_arrays(i));
  const std::int64_t n = i.num_operands() / 2;
  const Shape &array = i.operand(0)->shape(), &indices = i.operand(n)->shape(), &updates = i.operand(n + 1)->shape();
  const auto& a = i.attr<ScatterAttr>();
  const Lists lists{a.update_window_dims,           a.inserted_window_dims,
                    a.input_batching_dims,          a.scatter_indices_batching_dims,
                    a.scatter_dims_to_operand_dims, a.index_vector_dim};
  TRY(check_lists(i, array, indices, lists, kScatterNames));
  TRY(check_updates(i, array, indices, updates, lists));
  std::vector<Shape> results, current, incoming;
  const std::vector<Shape> given = results_of(*i.to_apply());
  if (static_cast<std::int64_t>(given.size()) != n)
    return wrong(i, "computation ", i.to_apply()->name(), " must give ", n, " results, found ", given.size());
  for (std::int64_t k = 0; k < n; ++k) {
    const Shape &input = i.operand(k)->shape(), &update = i.operand(n + 1 + k)->shape();
    if (!same_dims(input, array)) return wrong(i, "inputs must have equal dimensions, found ", array, " and ", input);
    if (!same_dims(update, updates))
      return wrong(i, "updates must have equal dimensions, found ", updates, " and ", update);
    results.push_back(with_type(input, input.dtype()));
    current.push_back(Shape::scalar(input.dtype()));
    incoming.push_back(Shape::scalar(update.dtype()));
  }
  const Shape result = one_or_tuple(current);
  current.insert(current.end(), incoming.begin(), incoming.end());
  TRY(want_signature(i, *i.to_apply(), current, result, /*ignore_precision=*/true));
  return one_or_tuple(std::move(results));
}

}  // namespace hloom::hlo
