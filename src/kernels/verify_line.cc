#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

using hlo::Opcode;

// Families of element types, to be joined.
enum Family : unsigned { kPred = 1, kInt = 2, kFloat = 4, kComplex = 8, kNumber = 14, kAny = 15 };

unsigned family(DType type) {
  if (type == DType::Pred) return kPred;
  if (is_complex(type)) return kComplex;
  return is_floating(type) ? kFloat : kInt;
}

// The operand types of opcodes whose operands are all of one type; 0 for other opcodes.
unsigned operand_families(Opcode opcode) {
  switch (opcode) {
    case Opcode::Copy: case Opcode::Add: case Opcode::Multiply: return kAny;
    case Opcode::Abs: case Opcode::Negate: case Opcode::Sign: case Opcode::Subtract: case Opcode::Divide:
    case Opcode::Power: return kNumber;
    case Opcode::Not: case Opcode::And: case Opcode::Or: case Opcode::Xor: return kPred | kInt;
    case Opcode::Popcnt: case Opcode::CountLeadingZeros: case Opcode::Mulhi: case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic: case Opcode::ShiftRightLogical: return kInt;
    case Opcode::Floor: case Opcode::Ceil: case Opcode::RoundNearestAfz: case Opcode::RoundNearestEven:
    case Opcode::IsFinite: case Opcode::Erf: case Opcode::ReducePrecision: return kFloat;
    case Opcode::Remainder: return kInt | kFloat;
    case Opcode::Maximum: case Opcode::Minimum: case Opcode::Clamp: return kPred | kInt | kFloat;
    case Opcode::Sqrt: case Opcode::Rsqrt: case Opcode::Cbrt: case Opcode::Exponential:
    case Opcode::ExponentialMinusOne: case Opcode::Log: case Opcode::LogPlusOne: case Opcode::Logistic:
    case Opcode::Sine: case Opcode::Cosine: case Opcode::Tan: case Opcode::Tanh: case Opcode::Sinh:
    case Opcode::Cosh: case Opcode::Asin: case Opcode::Acos: case Opcode::Atan: case Opcode::Asinh:
    case Opcode::Acosh: case Opcode::Atanh: case Opcode::Atan2: case Opcode::Real: case Opcode::Imag:
      return kFloat | kComplex;
    default: return 0;
  }
}

DType result_type(Opcode opcode, DType operand) {
  if (opcode == Opcode::IsFinite) return DType::Pred;
  const bool part = opcode == Opcode::Abs || opcode == Opcode::Real || opcode == Opcode::Imag;
  return part ? real_type(operand) : operand;
}

// bitcast-convert counts pred as 8 bits.
int cast_width(DType type) { return type == DType::Pred ? 8 : bit_width(type); }

class LineRule {
 public:
  LineRule(const Kernel& kernel, const Line& line) : kernel_(kernel), line_(line) {
    for (const Value v : line.operands) types_.push_back(kernel.type(v));
  }

  Expected<> check() const {
    const DType result = kernel_.type(line_.result);
    if (!is_array_type(result)) return wrong("has no element type");
    if (static_cast<int>(types_.size()) != hlo::arity(line_.opcode))
      return wrong("has ", types_.size(), " operands");
    switch (line_.opcode) {
      case Opcode::Constant: return {};
      case Opcode::Convert: return {};
      case Opcode::Compare: return check_compare();
      case Opcode::Select:
        if (types_[0] != DType::Pred) return wrong("selects by ", name(types_[0]));
        return all_are(1, result);
      case Opcode::Complex:
        TRY(all_are(0, types_[0]));
        return is_complex(result) && real_type(result) == types_[0] ? Expected<>() : wrong("of ", name(types_[0]));
      case Opcode::BitcastConvert:
        if (cast_width(types_[0]) != cast_width(result) || is_complex(types_[0]) != is_complex(result))
          return wrong("from ", name(types_[0]));
        return {};
      case Opcode::StochasticConvert: return check_stochastic();
      default: break;
    }
    return check_uniform();
  }

 private:
  template <typename... Parts>
  Error wrong(const Parts&... parts) const {
    const ValueInfo& v = kernel_.values[static_cast<std::size_t>(line_.result)];
    return fail(Code::InvalidArgument, kernel_.name, ": ", v.name, " = ", hlo::name(line_.opcode), " to ",
                name(v.type), " ", parts...);
  }
  Expected<> all_are(std::size_t from, DType type) const {
    for (std::size_t i = from; i < types_.size(); ++i)
      if (types_[i] != type) return wrong("has an operand of type ", name(types_[i]));
    return {};
  }
  Expected<> check_uniform() const {
    const unsigned families = operand_families(line_.opcode);
    if (families == 0) return wrong("is no elementwise opcode");
    if ((family(types_[0]) & families) == 0) return wrong("has an operand of type ", name(types_[0]));
    TRY(all_are(0, types_[0]));
    if (result_type(line_.opcode, types_[0]) != kernel_.type(line_.result))
      return wrong("has an operand of type ", name(types_[0]));
    if (line_.opcode == Opcode::ReducePrecision &&
        (line_.reduce_precision.exponent_bits < 1 || line_.reduce_precision.mantissa_bits < 0))
      return wrong("has exponent ", line_.reduce_precision.exponent_bits, " mantissa ",
                   line_.reduce_precision.mantissa_bits);
    return {};
  }
  Expected<> check_compare() const {
    TRY(all_are(0, types_[0]));
    if (kernel_.type(line_.result) != DType::Pred) return wrong("is no pred");
    using hlo::Comparison, hlo::Direction;
    const Direction d = line_.compare.direction;
    const unsigned f = family(types_[0]);
    bool good = false;
    switch (line_.compare.type) {
      case Comparison::Float:
        good = f == kFloat || (f == kComplex && (d == Direction::Eq || d == Direction::Ne));
        break;
      case Comparison::TotalOrder: good = f == kFloat; break;
      case Comparison::Signed: good = is_signed(types_[0]); break;
      case Comparison::Unsigned: good = is_unsigned(types_[0]) || f == kPred; break;
    }
    return good ? Expected<>() : wrong("compares ", name(types_[0]), " in another type's order");
  }
  Expected<> check_stochastic() const {
    if (family(types_[0]) != kFloat || !is_unsigned(types_[1]) || bit_width(types_[0]) != bit_width(types_[1]) ||
        !is_signed(kernel_.type(line_.result)))
      return wrong("from ", name(types_[0]), ", ", name(types_[1]));
    return {};
  }

  const Kernel& kernel_;
  const Line& line_;
  std::vector<DType> types_;
};

}  // namespace

Expected<> verify_line(const Kernel& kernel, const Line& line) { return LineRule(kernel, line).check(); }

}  // namespace hloom::kernels
