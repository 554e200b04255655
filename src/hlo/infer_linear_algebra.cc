// fft, triangular-solve, cholesky, batch norms, hlo-ops 8.5 to 8.7.
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

// The type that an FFT gives, if it takes `from`.
std::optional<DType> fft_result(FftType type, DType from) {
  switch (type) {
    case FftType::Fft:
    case FftType::Ifft: return is_complex(from) ? std::optional(from) : std::nullopt;
    case FftType::Rfft:
      if (from == DType::F32) return DType::C64;
      return from == DType::F64 ? std::optional(DType::C128) : std::nullopt;
    case FftType::Irfft: return is_complex(from) ? std::optional(real_type(from)) : std::nullopt;
  }
  return std::nullopt;
}

Expected<Shape> infer_fft(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& from = i.operand(0)->shape();
  const auto& a = i.attr<FftAttr>();
  const auto n = static_cast<std::int64_t>(a.length.size());
  if (n < 1 || n > 3 || n > from.rank())
    return wrong(i, "fft_length must have 1 to 3 entries and at most the operand's rank, found ", n);
  const auto type = fft_result(a.type, from.dtype());
  if (!type) return wrong(i, "this fft does not take ", from.dtype());
  Shape result = with_type(from, *type);
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t d = from.rank() - n + k, length = a.length[static_cast<std::size_t>(k)];
    if (length < 0) return wrong(i, "fft_length ", length, " is negative");
    const bool halves = k == n - 1 && (a.type == FftType::Rfft || a.type == FftType::Irfft);
    const std::int64_t half = length == 0 ? 0 : length / 2 + 1;
    const std::int64_t expected = halves && a.type == FftType::Irfft ? half : length;
    if (from.dim(d) != expected)
      return wrong(i, "dimension ", d, " is ", from.dim(d), ", must be ", expected, " for fft_length ", length);
    if (halves) result.set_dim(d, a.type == FftType::Rfft ? half : length);
  }
  return result;
}

bool is_square(const Shape& s) { return s.rank() >= 2 && s.dim(s.rank() - 1) == s.dim(s.rank() - 2); }

Expected<Shape> infer_cholesky(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& a = i.operand(0)->shape();
  if (!is_square(a) || !(is_floating(a.dtype()) || is_complex(a.dtype())))
    return wrong(i, "cholesky takes square matrices of floats or complex numbers, found ", a);
  return with_type(a, a.dtype());
}

Expected<Shape> infer_triangular_solve(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape &a = i.operand(0)->shape(), &b = i.operand(1)->shape();
  const auto type = more_precise(a.dtype(), b.dtype());
  if (!type || !is_square(a) || !(is_floating(*type) || is_complex(*type)))
    return wrong(i, "triangular-solve takes square matrices of floats or complex numbers, found ", a, " and ", b);
  if (a.rank() != b.rank()) return wrong(i, "ranks of ", a, " and ", b, " must be equal");
  for (std::int64_t d = 0; d < a.rank() - 2; ++d)
    if (a.dim(d) != b.dim(d)) return wrong(i, "batch dimension ", d, " of ", a, " and ", b, " must be equal");
  const std::int64_t side = b.rank() - (i.attr<TriangularSolveAttr>().left_side ? 2 : 1);
  if (b.dim(side) != a.dim(a.rank() - 1))
    return wrong(i, "dimension ", side, " of ", b, " must be ", a.dim(a.rank() - 1));
  return with_type(b, *type);
}

Expected<Shape> infer_batch_norm(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape& x = i.operand(0)->shape();
  const std::int64_t f = i.attr<BatchNormAttr>().feature_index;
  if (!is_floating(x.dtype())) return wrong(i, "batch norms take floats, found ", x);
  if (f < 0 || f >= x.rank()) return wrong(i, "feature_index ", f, " is not a dimension of ", x);
  for (std::int64_t k = 1; k < i.num_operands(); ++k) {
    const Shape& s = i.operand(k)->shape();
    const bool whole = i.opcode() == Opcode::BatchNormGrad && k == 4;
    const bool fits = whole ? same_dims(s, x) : s.rank() == 1 && s.dim(0) == x.dim(f);
    if (!fits || !is_floating(s.dtype()))
      return wrong(i, "operand ", k, " (", s, ") must be floats, one for each of the ", x.dim(f), " features",
                   whole ? " and each place" : "");
  }
  const Shape y = with_type(x, x.dtype());
  if (i.opcode() == Opcode::BatchNormInference) return y;
  const Shape v = with_type(pick_dims(x, {f}), i.operand(1)->shape().dtype());
  return Shape::tuple({y, v, v});
}

}  // namespace

Expected<Shape> infer_linear_algebra(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Fft: return infer_fft(i);
    case Opcode::Cholesky: return infer_cholesky(i);
    case Opcode::TriangularSolve: return infer_triangular_solve(i);
    default: return infer_batch_norm(i);
  }
}

}  // namespace hloom::hlo
