// Whole-array movement and reinterpretation, hlo-ops 5, 6.1 and 11.
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

Expected<Shape> infer_broadcast(const Instruction& i) {
  TRY(want_array(i, 0));
  TRY(want_written_array(i));
  const Shape& from = i.operand(0)->shape();
  Shape result = i.shape();
  if (static_cast<std::int64_t>(i.dimensions().size()) != from.rank())
    return wrong(i, "dimensions has ", i.dimensions().size(), " entries for an operand of rank ", from.rank());
  TRY(want_distinct(i, i.dimensions(), result.rank(), "dimensions"));
  for (std::int64_t d = 0; d < from.rank(); ++d) {
    const std::int64_t to = i.dimension(d);
    if (from.dim(d) != result.dim(to))
      return wrong(i, "operand dimension ", d, " (", from.dim(d), ") becomes dimension ", to, " (", result.dim(to),
                   "), sizes must be equal");
    result.set_dynamic_dim(to, from.is_dynamic_dim(d));
  }
  result.set_dtype(from.dtype());
  return result;
}

Expected<Shape> infer_reshape(const Instruction& i) {
  TRY(want_array(i, 0));
  TRY(want_written_array(i));
  const Shape& from = i.operand(0)->shape();
  const auto before = from.element_count(), after = i.shape().element_count();
  if (before && after && *before != *after)
    return wrong(i, "reshapes ", *before, " elements of ", from, " to ", *after, " of ", i.shape());
  if (i.opcode() == Opcode::Reshape) {
    const std::int64_t inferred = i.attr<ReshapeAttr>().inferred_dimension;
    if (inferred < -1 || inferred >= i.shape().rank())
      return wrong(i, "inferred_dimension ", inferred, " is not a dimension of ", i.shape());
  }
  Shape result = i.shape();
  result.set_dtype(from.dtype());
  return result;
}

Expected<Shape> infer_dynamic_reshape(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, "dynamic-reshape needs an operand");
  Shape result = TRY(infer_reshape(i));
  if (i.num_operands() != 1 + result.rank())
    return wrong(i, "expects ", result.rank(), " sizes, found ", i.num_operands() - 1);
  for (std::int64_t k = 1; k < i.num_operands(); ++k)
    if (!compatible(i.operand(k)->shape(), Shape::scalar(DType::S32)))
      return wrong(i, "operand ", k, " must be s32[], found ", i.operand(k)->shape());
  return result;
}

Expected<Shape> infer_transpose(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& from = i.operand(0)->shape();
  if (static_cast<std::int64_t>(i.dimensions().size()) != from.rank())
    return wrong(i, "dimensions has ", i.dimensions().size(), " entries for an operand of rank ", from.rank());
  TRY(want_distinct(i, i.dimensions(), from.rank(), "dimensions"));
  return pick_dims(from, i.dimensions());
}

Expected<Shape> infer_reverse(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& from = i.operand(0)->shape();
  TRY(want_distinct(i, i.dimensions(), from.rank(), "dimensions"));
  return with_type(from, from.dtype());
}

Expected<std::int64_t> only_dimension(const Instruction& i, std::int64_t rank) {
  if (i.dimensions().size() != 1) return wrong(i, "dimensions must name one, found ", i.dimensions().size());
  TRY(want_distinct(i, i.dimensions(), rank, "dimensions"));
  return i.dimension(0);
}

Expected<Shape> infer_concatenate(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, "concatenate needs an operand");
  TRY(want_arrays(i));
  const Shape& first = i.operand(0)->shape();
  const std::int64_t along = TRY(only_dimension(i, first.rank()));
  Shape result = with_type(first, first.dtype());
  for (std::int64_t k = 1; k < i.num_operands(); ++k) {
    const Shape& s = i.operand(k)->shape();
    const auto type = more_precise(result.dtype(), s.dtype());
    if (!type || s.rank() != first.rank())
      return wrong(i, "operand ", k, " (", s, ") must have type and rank of ", first);
    result.set_dtype(*type);
    for (std::int64_t d = 0; d < s.rank(); ++d) {
      if (d != along && s.dim(d) != first.dim(d))
        return wrong(i, "dimension ", d, " of operand ", k, " is ", s.dim(d), ", must be ", first.dim(d));
      if (s.is_dynamic_dim(d)) result.set_dynamic_dim(d, true);
    }
    std::int64_t sum = Shape::kUnbounded;
    if (result.dim(along) >= 0 && s.dim(along) >= 0 && __builtin_add_overflow(result.dim(along), s.dim(along), &sum))
      return wrong(i, "dimension ", along, " grows beyond 2^63");
    result.set_dim(along, sum);
  }
  return result;
}

Expected<Shape> infer_pad(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape &from = i.operand(0)->shape(), &value = i.operand(1)->shape();
  const auto type = more_precise(from.dtype(), value.dtype());
  if (!value.is_scalar() || !type) return wrong(i, "pads ", from, " with ", value, ", must be a scalar of its type");
  const auto& dims = i.attr<PadAttr>().dims;
  if (static_cast<std::int64_t>(dims.size()) != from.rank())
    return wrong(i, "padding has ", dims.size(), " dimensions, operand ", from.rank());
  Shape result = with_type(from, *type);
  for (std::int64_t d = 0; d < from.rank(); ++d) {
    const PadDim& p = dims[static_cast<std::size_t>(d)];
    if (p.interior < 0) return wrong(i, "interior padding of dimension ", d, " is ", p.interior, ", must be >= 0");
    if (from.dim(d) == Shape::kUnbounded) continue;
    const std::int64_t gaps = std::max<std::int64_t>(from.dim(d) - 1, 0);
    const __int128 size = static_cast<__int128>(gaps) * p.interior + from.dim(d) + p.low + p.high;
    const auto fits = in_range(size);
    if (!fits) return wrong(i, "padding gives dimension ", d, " a size that is negative or beyond 2^63");
    result.set_dim(d, *fits);
  }
  return result;
}

// Bytes of an array's storage, or nothing if that depends on tiles or is beyond 2^63.
std::optional<std::int64_t> plain_bytes(const Shape& s) {
  const auto count = s.element_count();
  const Layout::Extra& parts = s.layout().parts();
  if (!count || !parts.tiles.empty()) return std::nullopt;
  const std::int64_t width = parts.element_bits > 0 ? parts.element_bits : byte_width(s.dtype()) * 8;
  return in_range((static_cast<__int128>(*count) * width + 7) / 8);
}

Expected<Shape> infer_bitcast(const Instruction& i) {
  TRY(want_array(i, 0));
  TRY(want_written_array(i));
  const auto before = plain_bytes(i.operand(0)->shape()), after = plain_bytes(i.shape());
  if (before && after && *before != *after)
    return wrong(i, "bitcast of ", *before, " bytes of ", i.operand(0)->shape(), " to ", *after, " of ",
                 i.shape());
  return i.shape();
}

Expected<Shape> infer_bitcast_convert(const Instruction& i) {
  TRY(want_array(i, 0));
  TRY(want_written_array(i));
  const Shape& from = i.operand(0)->shape();
  const DType type = i.shape().dtype();
  if (is_complex(from.dtype()) != is_complex(type))
    return wrong(i, "bitcast-convert between real and complex: ", from.dtype(), " and ", type);
  const auto width = [](DType t) { return t == DType::Pred ? 8 : bit_width(t); };
  const std::int64_t w = width(from.dtype()), v = width(type);
  if (w == v) return with_type(from, type);
  if (w % v != 0 && v % w != 0) return wrong(i, "widths of ", from.dtype(), " and ", type, " do not divide");
  Dims kept = remaining_dims(from, {});
  if (w < v) {
    const std::int64_t last = from.rank() - 1;
    if (last < 0 || from.dim(last) != v / w || from.is_dynamic_dim(last))
      return wrong(i, "the last dimension of ", from, " must be ", v / w, " to become one ", type);
    kept.pop_back();
    return with_type(pick_dims(from, kept), type);
  }
  if (from.rank() == Shape::kMaxRank) return wrong(i, "result has more than ", Shape::kMaxRank, " dimensions");
  Dims sizes = from.dims();
  sizes.push_back(w / v);
  Shape result = Shape::array(type, std::move(sizes));
  for (std::int64_t d = 0; d < from.rank(); ++d) result.set_dynamic_dim(d, from.is_dynamic_dim(d));
  return result;
}

std::optional<std::int64_t> constant_scalar(const Instruction& i) {
  const auto* constant = i.attributes().get_if<ConstantAttr>();
  if (constant == nullptr || !constant->literal.shape().is_scalar() || constant->literal.bytes().empty())
    return std::nullopt;
  return element_as_int64(constant->literal, 0);
}

Expected<Shape> infer_dimension_size(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& from = i.operand(0)->shape();
  const std::int64_t d = TRY(only_dimension(i, from.rank()));
  if (i.opcode() == Opcode::GetDimensionSize) {
    if (from.dim(d) > INT32_MAX) return wrong(i, "size ", from.dim(d), " does not fit s32");
    return Shape::scalar(DType::S32);
  }
  if (!compatible(i.operand(1)->shape(), Shape::scalar(DType::S32)))
    return wrong(i, "the size must be s32[], found ", i.operand(1)->shape());
  Shape result = with_type(from, from.dtype());
  // A size that is a constant of the full bound makes the dimension static again, if that is what is written.
  const bool written_static = i.shape().is_array() && i.shape().rank() == result.rank() && !i.shape().is_dynamic_dim(d);
  result.set_dynamic_dim(d, !(written_static && constant_scalar(*i.operand(1)) == from.dim(d)));
  return result;
}

}  // namespace

Expected<Shape> infer_movement(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Broadcast: return infer_broadcast(i);
    case Opcode::Reshape: return infer_reshape(i);
    case Opcode::DynamicReshape: return infer_dynamic_reshape(i);
    case Opcode::Transpose: return infer_transpose(i);
    case Opcode::Reverse: return infer_reverse(i);
    case Opcode::Concatenate: return infer_concatenate(i);
    case Opcode::Pad: return infer_pad(i);
    case Opcode::Bitcast: return infer_bitcast(i);
    case Opcode::BitcastConvert: return infer_bitcast_convert(i);
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize: return infer_dimension_size(i);
    case Opcode::Shuffle: TRY(want_array(i, 0)); return with_type(i.operand(0)->shape(), i.operand(0)->shape().dtype());
    default: return wrong(i, i.opcode(), " moves nothing");
  }
}

}  // namespace hloom::hlo
