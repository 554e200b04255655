// Elementwise operations, hlo-ops 4 and 5: result dimensions are the operands', types by table.
#include "hlo/infer_rules.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

// Sets of element types that operands may have.
constexpr unsigned kPred = 1, kSigned = 2, kUnsigned = 4, kFloat = 8, kComplex = 16;
constexpr unsigned kInt = kSigned | kUnsigned;
constexpr unsigned kNumber = kInt | kFloat | kComplex;
constexpr unsigned kAny = kNumber | kPred;

unsigned class_of(DType type) {
  if (type == DType::Pred) return kPred;
  if (is_signed(type)) return kSigned;
  if (is_unsigned(type)) return kUnsigned;
  if (is_floating(type)) return kFloat;
  return is_complex(type) ? kComplex : 0;
}

std::string_view words(unsigned types) {
  switch (types) {
    case kInt: return "integers";
    case kFloat: return "floats";
    case kFloat | kComplex: return "floats or complex numbers";
    case kSigned | kFloat | kComplex: return "signed numbers";
    case kPred | kInt: return "pred or integers";
    case kPred | kInt | kFloat: return "pred or real numbers";
    case kInt | kFloat: return "real numbers";
    case kNumber: return "numbers";
    default: return "an array";
  }
}

// What types the operands of an op may have, all of them alike; 0 if the op has a rule of its own.
unsigned operand_types(Opcode opcode) {
  switch (opcode) {
    case Opcode::Abs:
    case Opcode::Sign: return kSigned | kFloat | kComplex;
    case Opcode::Negate:
    case Opcode::Subtract:
    case Opcode::Divide:
    case Opcode::Power: return kNumber;
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Copy: return kAny;
    case Opcode::Remainder: return kInt | kFloat;
    case Opcode::Not:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor: return kPred | kInt;
    case Opcode::Maximum:
    case Opcode::Minimum: return kPred | kInt | kFloat;
    case Opcode::Popcnt:
    case Opcode::CountLeadingZeros:
    case Opcode::Mulhi:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical: return kInt;
    case Opcode::Floor:
    case Opcode::Ceil:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::IsFinite:
    case Opcode::Erf:
    case Opcode::ReducePrecision: return kFloat;
    case Opcode::Imag:
    case Opcode::Real:
    case Opcode::Rsqrt:
    case Opcode::Sqrt: return kFloat | kComplex;
    default: return is_function(opcode) ? kFloat | kComplex : 0;
  }
}

// The common shape of operands from `first` on: equal dimensions, the more precise type, dynamic where any is.
Expected<Shape> common_shape(const Instruction& i, std::int64_t first = 0) {
  TRY(want_arrays(i));
  Shape result = with_type(i.operand(first)->shape(), i.operand(first)->shape().dtype());
  for (std::int64_t k = first + 1; k < i.num_operands(); ++k) {
    const Shape& s = i.operand(k)->shape();
    const auto type = more_precise(result.dtype(), s.dtype());
    if (!type || !same_dims(result, s))
      return wrong(i, "operands ", first, " and ", k, " must have one shape, found ", result, " and ", s);
    result.set_dtype(*type);
    for (std::int64_t d = 0; d < s.rank(); ++d)
      if (s.is_dynamic_dim(d)) result.set_dynamic_dim(d, true);
  }
  return result;
}

Expected<Shape> infer_plain(const Instruction& i) {
  if (i.opcode() == Opcode::Copy && !i.operand(0)->shape().is_array()) return i.operand(0)->shape();
  Shape result = TRY(common_shape(i));
  const unsigned allowed = operand_types(i.opcode());
  if ((class_of(result.dtype()) & allowed) == 0)
    return wrong(i, i.opcode(), " takes ", words(allowed), ", found ", result);
  if (i.opcode() == Opcode::IsFinite) result.set_dtype(DType::Pred);
  const bool gives_real = i.opcode() == Opcode::Abs || i.opcode() == Opcode::Real || i.opcode() == Opcode::Imag;
  if (gives_real) result.set_dtype(real_type(result.dtype()));
  return result;
}

bool comparison_fits(Comparison type, Direction direction, DType operand) {
  switch (type) {
    case Comparison::Float:
      if (is_complex(operand)) return direction == Direction::Eq || direction == Direction::Ne;
      return is_floating(operand);
    case Comparison::TotalOrder: return is_floating(operand);
    case Comparison::Signed: return is_signed(operand);
    case Comparison::Unsigned: return is_unsigned(operand) || operand == DType::Pred;
  }
  return false;
}

Expected<Shape> infer_compare(const Instruction& i) {
  Shape result = TRY(common_shape(i));
  const auto& attr = i.attr<CompareAttr>();
  if (!comparison_fits(attr.type, attr.direction, result.dtype()))
    return wrong(i, "this type and direction of comparison do not suit ", result.dtype());
  result.set_dtype(DType::Pred);
  return result;
}

Expected<Shape> infer_select(const Instruction& i) {
  const Shape result = TRY(common_shape(i, 1));
  const Shape& p = i.operand(0)->shape();
  if (p.dtype() != DType::Pred || !(p.is_scalar() || same_dims(p, result)))
    return wrong(i, "selects by ", p, ", must be a pred of the shape of ", result, " or a scalar");
  return result;
}

Expected<Shape> infer_clamp(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape& x = i.operand(1)->shape();
  if (is_complex(x.dtype())) return wrong(i, "clamp takes no complex numbers, found ", x);
  Shape result = with_type(x, x.dtype());
  for (const std::int64_t k : {0, 2}) {
    const Shape& bound = i.operand(k)->shape();
    const auto type = more_precise(result.dtype(), bound.dtype());
    if (!type || !(bound.is_scalar() || same_dims(bound, x)))
      return wrong(i, "bound ", bound, " must be a scalar or of the shape of ", x);
    result.set_dtype(*type);
  }
  return result;
}

Expected<Shape> infer_complex(const Instruction& i) {
  Shape result = TRY(common_shape(i));
  if (result.dtype() != DType::F32 && result.dtype() != DType::F64)
    return wrong(i, "complex takes f32 or f64, found ", result);
  result.set_dtype(result.dtype() == DType::F32 ? DType::C64 : DType::C128);
  return result;
}

Expected<Shape> infer_convert(const Instruction& i) {
  TRY(want_array(i, 0));
  TRY(want_written_array(i));
  return with_type(i.operand(0)->shape(), i.shape().dtype());
}

Expected<Shape> infer_reduce_precision(const Instruction& i) {
  const auto& attr = i.attr<ReducePrecisionAttr>();
  if (attr.exponent_bits < 1 || attr.mantissa_bits < 0)
    return wrong(i, "exponent_bits ", attr.exponent_bits, " must be at least 1, mantissa_bits ", attr.mantissa_bits,
                 " at least 0");
  return infer_plain(i);
}

Expected<Shape> infer_stochastic_convert(const Instruction& i) {
  TRY(want_arrays(i));
  TRY(want_written_array(i));
  const Shape &x = i.operand(0)->shape(), &random = i.operand(1)->shape();
  if (!is_floating(x.dtype()) || !is_unsigned(random.dtype()) || bit_width(x.dtype()) != bit_width(random.dtype()) ||
      !same_dims(x, random))
    return wrong(i, "takes floats and unsigned integers of their width and shape, found ", x, " and ", random);
  if (!is_signed(i.shape().dtype())) return wrong(i, "gives signed integers, not ", i.shape().dtype());
  return with_type(x, i.shape().dtype());
}

Expected<Shape> infer_map(const Instruction& i) {
  TRY(want_arrays(i));
  if (i.num_operands() == 0) return wrong(i, "map needs an operand");
  const Shape& first = i.operand(0)->shape();
  std::vector<Shape> scalars;
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    const Shape& s = i.operand(k)->shape();
    if (!same_dims(s, first)) return wrong(i, "operands must have one shape, found ", first, " and ", s);
    scalars.push_back(Shape::scalar(s.dtype()));
  }
  for (std::size_t d = 0; d < i.dimensions().size(); ++d)
    if (i.dimensions()[d] != static_cast<std::int64_t>(d)) return wrong(i, "dimensions must be 0, 1, 2 …");
  if (!i.dimensions().empty() && static_cast<std::int64_t>(i.dimensions().size()) != first.rank())
    return wrong(i, "dimensions must list all ", first.rank(), " dimensions");
  const Shape& root = i.to_apply()->root()->shape();
  if (!root.is_scalar()) return wrong(i, "computation ", i.to_apply()->name(), " must give a scalar, found ", root);
  TRY(want_signature(i, *i.to_apply(), scalars, root));
  return with_type(first, root.dtype());
}

}  // namespace

Expected<Shape> infer_elementwise(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Compare: return infer_compare(i);
    case Opcode::Select: return infer_select(i);
    case Opcode::Clamp: return infer_clamp(i);
    case Opcode::Complex: return infer_complex(i);
    case Opcode::Convert: return infer_convert(i);
    case Opcode::ReducePrecision: return infer_reduce_precision(i);
    case Opcode::StochasticConvert: return infer_stochastic_convert(i);
    case Opcode::Map: return infer_map(i);
    default: return infer_plain(i);
  }
}

}  // namespace hloom::hlo
