// slice, dynamic-slice, dynamic-update-slice, hlo-ops 6.2.
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

Expected<Shape> infer_slice(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& from = i.operand(0)->shape();
  const auto& attr = i.attr<SliceAttr>();
  const auto rank = static_cast<std::size_t>(from.rank());
  if (attr.starts.size() != rank || attr.limits.size() != rank || attr.strides.size() != rank)
    return wrong(i, "slice has ", attr.starts.size(), " ranges for an operand of rank ", rank);
  Shape result = with_type(from, from.dtype());
  for (std::size_t k = 0; k < rank; ++k) {
    const auto d = static_cast<std::int64_t>(k);
    const std::int64_t start = attr.starts[k], limit = attr.limits[k], stride = attr.strides[k];
    const bool bounded = from.dim(d) != Shape::kUnbounded;
    if (start < 0 || limit < start || (bounded && limit > from.dim(d)) || stride < 1)
      return wrong(i, "range [", start, ":", limit, ":", stride, "] of dimension ", d,
                   " must be 0 <= start <= limit <= ", from.dim(d), ", stride >= 1");
    result.set_dim(d, (limit - start) / stride + ((limit - start) % stride != 0 ? 1 : 0));
    const bool whole = start == 0 && limit == from.dim(d) && stride == 1;
    result.set_dynamic_dim(d, whole && from.is_dynamic_dim(d));
  }
  return result;
}

// Start indices from operand `first` on: `rank` integer scalars of one type, or one vector of length `rank`.
Expected<> want_start_indices(const Instruction& i, std::int64_t first, std::int64_t rank) {
  const std::int64_t given = i.num_operands() - first;
  if (given == 1) {
    const Shape& s = i.operand(first)->shape();
    if (s.is_array() && s.rank() == 1 && s.dim(0) == rank && is_integral(s.dtype())) return {};
  }
  if (given != rank) return wrong(i, "expects ", rank, " start indices, found ", given);
  for (std::int64_t k = first; k < i.num_operands(); ++k) {
    TRY(want_int_scalar(i, k));
    if (i.operand(k)->shape().dtype() != i.operand(first)->shape().dtype())
      return wrong(i, "start indices must have one type, found ", i.operand(first)->shape(), " and ",
                   i.operand(k)->shape());
  }
  return {};
}

Expected<Shape> infer_dynamic_slice(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, "dynamic-slice needs an operand");
  TRY(want_array(i, 0));
  const Shape& from = i.operand(0)->shape();
  TRY(want_start_indices(i, 1, from.rank()));
  const Dims& sizes = i.attr<DynamicSliceAttr>().sizes;
  if (static_cast<std::int64_t>(sizes.size()) != from.rank())
    return wrong(i, "dynamic_slice_sizes has ", sizes.size(), " entries for an operand of rank ", from.rank());
  Shape result = with_type(from, from.dtype());
  for (std::int64_t d = 0; d < from.rank(); ++d) {
    const std::int64_t size = sizes[static_cast<std::size_t>(d)];
    if (size < 0 || (from.dim(d) != Shape::kUnbounded && size > from.dim(d)))
      return wrong(i, "slice size ", size, " of dimension ", d, " must lie in [0, ", from.dim(d), "]");
    result.set_dim(d, size);
    result.set_dynamic_dim(d, from.is_dynamic_dim(d) && size == from.dim(d));
  }
  return result;
}

Expected<Shape> infer_dynamic_update_slice(const Instruction& i) {
  if (i.num_operands() < 2) return wrong(i, "dynamic-update-slice needs two operands and start indices");
  TRY(want_array(i, 0));
  TRY(want_array(i, 1));
  const Shape &base = i.operand(0)->shape(), &update = i.operand(1)->shape();
  const auto type = more_precise(base.dtype(), update.dtype());
  if (!type || base.rank() != update.rank()) return wrong(i, "update ", update, " must have type and rank of ", base);
  for (std::int64_t d = 0; d < base.rank(); ++d)
    if (base.dim(d) != Shape::kUnbounded && update.dim(d) > base.dim(d))
      return wrong(i, "dimension ", d, " of the update (", update.dim(d), ") exceeds the operand's (", base.dim(d),
                   ")");
  TRY(want_start_indices(i, 2, base.rank()));
  return with_type(base, *type);
}

}  // namespace

Expected<Shape> infer_slices(const Instruction& i) {
  if (i.opcode() == Opcode::Slice) return infer_slice(i);
  if (i.opcode() == Opcode::DynamicSlice) return infer_dynamic_slice(i);
  return infer_dynamic_update_slice(i);
}

}  // namespace hloom::hlo
