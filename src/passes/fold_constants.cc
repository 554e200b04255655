#include "passes/fold_constants.h"

#include <algorithm>
#include <cstring>

#include "functions/evaluate.h"
#include "interp/interpret.h"
#include "passes/make.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

using functions::Scalar;
using hlo::Literal;

std::uint64_t load(const Literal& literal, std::size_t at, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, literal.bytes().data() + at, width);
  return bits;
}

// Element `n`, or the one element of a scalar that stands beside arrays.
Scalar element(const Literal& literal, std::int64_t n) {
  const auto width = static_cast<std::size_t>(byte_width(real_type(literal.dtype())));
  const bool complex = is_complex(literal.dtype());
  const std::size_t at = literal.shape().is_scalar() ? 0 : static_cast<std::size_t>(n) * width * (complex ? 2 : 1);
  return {load(literal, at, width), complex ? load(literal, at + width, width) : 0};
}

void set_element(std::span<std::byte> bytes, DType type, std::int64_t n, Scalar value) {
  const auto width = static_cast<std::size_t>(byte_width(real_type(type)));
  const bool complex = is_complex(type);
  std::byte* at = bytes.data() + static_cast<std::size_t>(n) * width * (complex ? 2 : 1);
  std::memcpy(at, &value.real, width);
  if (complex) std::memcpy(at + width, &value.imag, width);
}

// One element of an elementwise instruction.
Scalar evaluate(const Instruction& i, const std::vector<Literal>& operands, std::int64_t n) {
  const DType type = operands.back().dtype();
  const auto operand = [&](std::size_t k) { return element(operands[k], n); };
  switch (i.opcode()) {
    case Opcode::Clamp: return functions::evaluate_clamp(type, operand(0), operand(1), operand(2));
    case Opcode::Select: return functions::evaluate_select(type, operand(0), operand(1), operand(2));
    case Opcode::Convert: return functions::evaluate_convert(type, i.shape().dtype(), operand(0));
    case Opcode::Compare: {
      const auto& a = i.attr<hlo::CompareAttr>();
      return functions::evaluate_compare(a.direction, a.type, type, operand(0), operand(1));
    }
    case Opcode::ReducePrecision: {
      const auto& a = i.attr<hlo::ReducePrecisionAttr>();
      return functions::evaluate_reduce_precision(type, static_cast<int>(a.exponent_bits),
                                                  static_cast<int>(a.mantissa_bits), operand(0));
    }
    default:
      return operands.size() == 1 ? functions::evaluate_unary(i.opcode(), type, operand(0))
                                  : functions::evaluate_binary(i.opcode(), type, operand(0), operand(1));
  }
}

Literal evaluate_elementwise(const Instruction& i, const std::vector<Literal>& operands) {
  Literal result(i.shape());
  const auto bytes = result.mutable_bytes();
  for (std::int64_t n = 0; n < i.shape().num_elements(); ++n)
    set_element(bytes, i.shape().dtype(), n, evaluate(i, operands, n));
  return result;
}

// What the interpreter computes exactly: data that is only moved, and integers.
bool is_exact(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Pad:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Gather:
    case Opcode::BitcastConvert:
    case Opcode::Broadcast:
    case Opcode::Iota: return true;
    case Opcode::Reduce:
    case Opcode::Dot:
      return i.shape().is_array() && (is_integral(i.shape().dtype()) || i.shape().dtype() == DType::Pred);
    default: return false;
  }
}

bool is_folded_elementwise(const Instruction& i) {
  return hlo::is_elementwise(i.opcode()) && i.called().empty() && i.opcode() != Opcode::StochasticConvert &&
         i.opcode() != Opcode::Mulhi;
}

class Folder {
 public:
  Instruction* fold(Instruction& i) {
    // Spread scalars and iotas are as good as constants as they are: what uses them may fold.
    if (is(&i, Opcode::Constant) || is(&i, Opcode::Broadcast) || is(&i, Opcode::Iota)) return nullptr;
    if (!i.shape().is_array() || !is_plain(i)) return nullptr;
    // What is read from constants bounds what a result may be: folding is not to make programs larger.
    std::int64_t read = 0;
    for (const Instruction* operand : i.operands())
      if (operand->shape().is_array() && !is_spread(*operand)) read += operand->shape().num_elements();
    most_elements_ = std::max(read, kMaxUnfolded);
    const auto value = value_of(&i, 0);
    return value ? Make(i).constant(*value) : nullptr;
  }

 private:
  // Operands that are written out for it may nest no deeper.
  static constexpr int kMaxDepth = 4;

  std::optional<Literal> value_of(const Instruction* i, int depth) {
    if (is(i, Opcode::Constant)) return i->shape().is_array() ? std::optional(i->literal()) : std::nullopt;
    const bool elementwise = is_folded_elementwise(*i);
    if (depth > kMaxDepth || (!elementwise && !is_exact(*i)) || !i->shape().is_array() || !may_compute(*i))
      return std::nullopt;
    if (depth > 0 && !is_spread(*i)) return std::nullopt;  // it will be folded itself, if it can be
    std::vector<Literal> operands;
    for (const Instruction* operand : i->operands()) {
      auto value = value_of(operand, depth + 1);
      if (!value) return std::nullopt;
      operands.push_back(*std::move(value));
    }
    work_ += i->shape().num_elements();
    if (elementwise) return evaluate_elementwise(*i, operands);
    auto result = interp::evaluate_instruction(*i, operands);
    if (!result) return std::nullopt;
    return *std::move(result);
  }

  // Iotas and broadcasts, under what only reorders them.
  static bool is_spread(const Instruction& i) {
    return is(&i, Opcode::Iota) || is(&i, Opcode::Broadcast) || is(&i, Opcode::Reshape) || is(&i, Opcode::Transpose);
  }

  bool may_compute(const Instruction& i) const {
    const std::int64_t elements = i.shape().num_elements();
    std::int64_t read = 0;
    for (const Instruction* operand : i.operands()) read += operand->shape().num_elements();
    return elements * byte_width(i.shape().dtype()) <= kMaxFoldedBytes && work_ + elements + read <= kMaxFoldedWork &&
           elements <= most_elements_;
  }

  std::int64_t work_ = 0;
  std::int64_t most_elements_ = 0;
};

}  // namespace

Expected<Changed> fold_constants(hlo::Module& module) {
  Folder folder;
  return rewrite(module, [&](Instruction& i) { return folder.fold(i); });
}

}  // namespace hloom::passes
