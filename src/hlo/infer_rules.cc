#include "hlo/infer_rules.h"

#include <limits>

#include "hlo/module.h"

namespace hloom::hlo {

bool sizes_in_range(const Shape& shape) {
  if (!shape.is_array()) return true;
  if (shape.rank() > Shape::kMaxRank) return false;
  bool bounded = true;
  for (const std::int64_t d : shape.dims()) {
    if (d < Shape::kUnbounded) return false;
    if (d == Shape::kUnbounded) bounded = false;
  }
  return !bounded || shape.element_count().has_value();
}

Expected<> want_array(const Instruction& i, std::int64_t k) {
  if (i.operand(k)->shape().is_array()) return {};
  return wrong(i, "operand ", k, " must be an array, found ", i.operand(k)->shape());
}

Expected<> want_arrays(const Instruction& i) {
  for (std::int64_t k = 0; k < i.num_operands(); ++k) TRY(want_array(i, k));
  return {};
}

Expected<> want_int_scalar(const Instruction& i, std::int64_t k) {
  const Shape& s = i.operand(k)->shape();
  if (s.is_scalar() && is_integral(s.dtype())) return {};
  return wrong(i, "operand ", k, " must be an integer scalar, found ", s);
}

Expected<> want_written_array(const Instruction& i) {
  const Shape& s = i.shape();
  if (!s.is_valid()) return wrong(i, i.opcode(), " needs its shape written");
  if (!s.is_array()) return wrong(i, i.opcode(), " gives an array, not ", s);
  if (!sizes_in_range(s)) return wrong(i, "the sizes of ", s, " are out of range");
  return {};
}

Expected<> want_distinct(const Instruction& i, const Dims& dims, std::int64_t rank, std::string_view what) {
  std::uint64_t seen = 0;
  for (const std::int64_t d : dims) {
    if (d < 0 || d >= rank || d >= Shape::kMaxRank)
      return wrong(i, what, " names dimension ", d, " of an array of rank ", rank);
    const std::uint64_t bit = 1ull << d;
    if ((seen & bit) != 0) return wrong(i, what, " names dimension ", d, " twice");
    seen |= bit;
  }
  return {};
}

Expected<> want_sorted(const Instruction& i, const Dims& dims, std::int64_t rank, std::string_view what) {
  TRY(want_distinct(i, dims, rank, what));
  if (!std::ranges::is_sorted(dims)) return wrong(i, what, " must be ascending");
  return {};
}

Shape with_type(const Shape& s, DType type) {
  Shape result = Shape::array(type, s.dims());
  for (std::int64_t d = 0; d < s.rank(); ++d) result.set_dynamic_dim(d, s.is_dynamic_dim(d));
  return result;
}

Shape pick_dims(const Shape& s, const Dims& dims) {
  Dims sizes;
  for (const std::int64_t d : dims) sizes.push_back(s.dim(d));
  Shape result = Shape::array(s.dtype(), std::move(sizes));
  for (std::size_t d = 0; d < dims.size(); ++d)
    result.set_dynamic_dim(static_cast<std::int64_t>(d), s.is_dynamic_dim(dims[d]));
  return result;
}

bool contains(const Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

Dims remaining_dims(const Shape& s, const Dims& removed) {
  Dims kept;
  for (std::int64_t d = 0; d < s.rank(); ++d)
    if (!contains(removed, d)) kept.push_back(d);
  return kept;
}

std::optional<DType> more_precise(DType a, DType b) {
  if (a == b) return a;
  if (!is_floating(a) || !is_floating(b)) return std::nullopt;
  if (bit_width(a) != bit_width(b)) return bit_width(a) > bit_width(b) ? a : b;
  // Of f16 and bf16, the one with more mantissa bits; of f8 types, any fixed choice.
  if (a == DType::F16 || b == DType::F16) return DType::F16;
  return std::min(a, b);
}

namespace {

bool may_hold_product(DType from, DType to) {
  if (from == to) return true;
  if (is_floating(from)) return is_floating(to);
  if (is_complex(from)) return is_complex(to);
  return (is_integral(to) || is_floating(to)) && bit_width(to) >= bit_width(from);
}

}  // namespace

Expected<DType> product_type(const Instruction& i, DType a, DType b) {
  if (i.shape().is_array()) {
    const DType written = i.shape().dtype();
    if (may_hold_product(a, written) && may_hold_product(b, written)) return written;
    return wrong(i, "a product of ", a, " and ", b, " may not be ", written);
  }
  if (const auto type = more_precise(a, b)) return *type;
  return wrong(i, "operands of types ", a, " and ", b, " need the result's type written");
}

Shape one_or_tuple(std::vector<Shape> shapes) {
  if (shapes.size() == 1) return std::move(shapes.front());
  return Shape::tuple(std::move(shapes));
}

std::optional<std::int64_t> in_range(__int128 v) {
  if (v < 0 || v > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(v);
}

Expected<Dims> windowed_dims(const Instruction& i, const Dims& dims, const Window& window) {
  Dims result;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const WindowDim& w = window[d];
    if (w.size < 0 || w.stride < 1 || w.lhs_dilate < 1 || w.rhs_dilate < 1)
      return wrong(i, "window dimension ", d, " needs size >= 0, stride and dilations >= 1");
    const __int128 dilated = dims[d] <= 0 ? 0 : static_cast<__int128>(dims[d] - 1) * w.lhs_dilate + 1;
    const __int128 padded = dilated + w.pad_low + w.pad_high;
    const __int128 span = w.size == 0 ? 0 : static_cast<__int128>(w.size - 1) * w.rhs_dilate + 1;
    const auto size = in_range(padded < span ? 0 : (padded - span) / w.stride + 1);
    if (!size) return wrong(i, "window dimension ", d, " gives more than 2^63 elements");
    result.push_back(*size);
  }
  return result;
}

namespace {

std::string signature(const std::vector<Shape>& parameters, const Shape& result) {
  return to_string(Shape::tuple(parameters), false) + " -> " +
         (result.is_valid() ? to_string(result, false) : std::string("…"));
}

}  // namespace

Expected<> want_signature(const Instruction& i, const Computation& computation, const std::vector<Shape>& parameters,
                          const Shape& result, bool ignore_precision) {
  const auto agrees = ignore_precision ? compatible_ignoring_precision : compatible;
  std::vector<Shape> found;
  for (const Instruction* p : computation.parameters()) found.push_back(p->shape());
  const bool good = std::ranges::equal(found, parameters, agrees) &&
                    (!result.is_valid() || agrees(computation.root()->shape(), result));
  if (good) return {};
  return fail(Code::FailedPrecondition, i.name(), ": computation ", computation.name(), " must be ",
              signature(parameters, result), ", found ", signature(found, computation.root()->shape()));
}

std::vector<Shape> results_of(const Computation& computation) {
  const Shape& root = computation.root()->shape();
  return root.is_tuple() ? root.elements() : std::vector<Shape>{root};
}

}  // namespace hloom::hlo
