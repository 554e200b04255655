#include "interp/kernel.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "interp/total_order.h"

namespace hloom::interp {
namespace {

using hlo::Comparison;
using hlo::Direction;
using hlo::Opcode;

template <typename Access, typename Op>
void apply_compare(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::byte{Op()(a.load(in[0], i), a.load(in[1], i))};
}

template <typename Access>
Kernel::Function ordered(Direction direction) {
  const auto make = []<typename Op>(Op) -> Kernel::Function { return apply_compare<Access, Op>; };
  switch (direction) {
    case Direction::Eq: return make([](auto a, auto b) { return a == b; });
    case Direction::Ne: return make([](auto a, auto b) { return a != b; });
    case Direction::Lt: return make([](auto a, auto b) { return a < b; });
    case Direction::Le: return make([](auto a, auto b) { return a <= b; });
    case Direction::Gt: return make([](auto a, auto b) { return a > b; });
    case Direction::Ge: return make([](auto a, auto b) { return a >= b; });
  }
  return nullptr;
}

template <typename Access>
Kernel::Function equality(Direction direction) {
  const auto make = []<typename Op>(Op) -> Kernel::Function { return apply_compare<Access, Op>; };
  if (direction == Direction::Eq) return make([](auto a, auto b) { return a == b; });
  if (direction == Direction::Ne) return make([](auto a, auto b) { return a != b; });
  return nullptr;
}

template <std::size_t kWidth>
void select(const Kernel&, std::byte* out, const std::byte* const* in, std::int64_t n) {
  constexpr auto kStep = static_cast<std::int64_t>(kWidth);
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(out + i * kStep, (in[0][i] != std::byte{0} ? in[1] : in[2]) + i * kStep, kWidth);
}

void copy(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  std::memmove(out, in[0], static_cast<std::size_t>(n * byte_width(k.type)));
}

template <typename Access>
void make_complex(const Kernel&, std::byte* out, const std::byte* const* in, std::int64_t n) {
  using Part = typename Access::Exact::value_type;
  constexpr auto kStep = static_cast<std::int64_t>(sizeof(Part));
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(out + 2 * i * kStep, in[0] + i * kStep, sizeof(Part));
    std::memcpy(out + (2 * i + 1) * kStep, in[1] + i * kStep, sizeof(Part));
  }
}

// Rounds a pattern to one of fewer digits and exponents (hlo-ops 5.2), all on the pattern: a carry out of the mantissa is
// the next exponent, and denormals need no thought. What the format lacks (infinities, zeros) is as in a conversion.
std::uint64_t reduce_bits(std::uint64_t bits, const hlo::FloatFormat& f, std::uint64_t largest,
                          std::int64_t exponent_bits, std::int64_t mantissa_bits) {
  const std::uint64_t one = 1, sign = bits & (one << (f.exponent_bits + f.mantissa_bits));
  const auto infinity = [&] { return hlo::encode_float(f, sign != 0 ? -HUGE_VAL : HUGE_VAL); };
  if (hlo::is_nan_bits(f, bits)) return mantissa_bits > 0 || !f.has_infinity() ? bits : infinity() & ~sign;
  std::uint64_t magnitude = bits ^ sign;
  if (magnitude > largest) return bits;
  if (mantissa_bits < f.mantissa_bits) {
    const auto dropped = static_cast<unsigned>(f.mantissa_bits - mantissa_bits);
    magnitude += (one << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1);
    magnitude &= ~((one << dropped) - 1);
  }
  if (exponent_bits < f.exponent_bits) {
    const std::int64_t bias = (std::int64_t{1} << (exponent_bits - 1)) - 1;
    const auto exponent = static_cast<std::int64_t>(magnitude >> f.mantissa_bits) - f.bias;
    if (exponent > bias) return infinity();
    if (exponent <= -bias) return hlo::encode_float(f, sign != 0 ? -0.0 : 0.0);
  }
  if (magnitude > largest) return infinity();
  const bool no_negative_zero = f.special == hlo::FloatFormat::Special::NanNegZero;
  return magnitude == 0 && no_negative_zero ? 0 : sign | magnitude;
}

void reduce_precision(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const auto& attr = k.instruction->attr<hlo::ReducePrecisionAttr>();
  const hlo::FloatFormat& format = hlo::float_format(k.type);
  const std::uint64_t largest = hlo::encode_float(format, hlo::largest_finite(format));
  const auto width = static_cast<std::size_t>(byte_width(k.type));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits =
        reduce_bits(bits_of(in[0], i, width), format, largest, attr.exponent_bits, attr.mantissa_bits);
    std::memcpy(out + i * static_cast<std::int64_t>(width), &bits, width);
  }
}

// The fraction as an integer of the random number's width goes up if it exceeds the random number (hlo-ops 5.3).
template <typename Source, typename Target>
void stochastic_convert(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Source source(k.type);
  const Target target(k.result);
  const auto width = static_cast<std::size_t>(byte_width(k.second));
  const double limit = std::ldexp(1.0, target.width - 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(source.load(in[0], i));
    const double magnitude = std::fabs(x), whole = std::trunc(magnitude);
    if (std::isnan(x)) {
      target.store(out, i, 0);
    } else if (x >= limit - 1 || x <= -limit) {
      const auto least = static_cast<std::int64_t>(~std::uint64_t{0} << (target.width - 1));
      target.store(out, i, x > 0 ? ~least : least);
    } else {
      const auto fraction = static_cast<std::uint64_t>(std::ldexp(magnitude - whole, bit_width(k.second)));
      const std::int64_t up = fraction > bits_of(in[1], i, width) ? 1 : 0;
      const std::int64_t rounded = static_cast<std::int64_t>(whole) + up;
      target.store(out, i, x < 0 ? -rounded : rounded);
    }
  }
}

Kernel::Function by_family(Opcode opcode, DType type, bool unary) {
  if (type == DType::Pred) return pred_operation(opcode);
  if (is_integral(type)) return integer_operation(opcode, type);
  if (is_complex(type)) return unary ? complex_function(opcode, type) : complex_operation(opcode, type);
  return unary ? real_function(opcode, type) : real_operation(opcode, type);
}

Kernel::Function function_of(const hlo::Instruction& instruction, const Kernel& k) {
  switch (instruction.opcode()) {
    case Opcode::Compare: return compare_operation(instruction.attr<hlo::CompareAttr>(), k.type);
    case Opcode::Select: return select_operation(k.second);
    case Opcode::Convert: return convert_operation(k.type, k.result);
    case Opcode::ReducePrecision: return reduce_precision_operation(k.type);
    case Opcode::StochasticConvert: return stochastic_convert_operation(k.type, k.result);
    case Opcode::Complex:
      return with_complex(k.result,
                          [](const auto& a) -> Kernel::Function { return make_complex<std::decay_t<decltype(a)>>; });
    case Opcode::Copy:
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
      return byte_width(k.type) == byte_width(k.result) && bit_width(k.type) == bit_width(k.result)
                 ? copy_operation(k.type)
                 : nullptr;
    default: return by_family(instruction.opcode(), k.type, instruction.num_operands() == 1);
  }
}

}  // namespace

Kernel kernel_of(const hlo::Instruction& instruction) {
  Kernel k;
  if (instruction.num_operands() == 0 || !instruction.shape().is_array()) return k;
  k.type = instruction.operand(0)->shape().dtype();
  if (instruction.num_operands() > 1) k.second = instruction.operand(1)->shape().dtype();
  k.result = instruction.shape().dtype();
  k.instruction = &instruction;
  if (is_array_type(k.type)) k.function = function_of(instruction, k);
  return k;
}

Kernel::Function compare_operation(const hlo::CompareAttr& attr, DType type) {
  if (type == DType::Pred) return ordered<Boolean>(attr.direction);
  if (attr.type == Comparison::TotalOrder && is_floating(type)) return ordered<TotalOrder>(attr.direction);
  if (is_complex(type))
    return with_complex(type, [&](const auto& a) { return equality<std::decay_t<decltype(a)>>(attr.direction); });
  if (is_floating(type))
    return with_float(type, [&](const auto& a) { return ordered<std::decay_t<decltype(a)>>(attr.direction); });
  return with_integer(type, [&](const auto& a) { return ordered<std::decay_t<decltype(a)>>(attr.direction); });
}

Kernel::Function select_operation(DType type) {
  switch (byte_width(type)) {
    case 1: return select<1>;
    case 2: return select<2>;
    case 4: return select<4>;
    case 8: return select<8>;
    case 16: return select<16>;
    default: return nullptr;
  }
}

Kernel::Function copy_operation(DType) { return copy; }

Kernel::Function reduce_precision_operation(DType type) {
  return is_floating(type) ? reduce_precision : nullptr;
}

Kernel::Function stochastic_convert_operation(DType from, DType to) {
  if (!is_floating(from) || !is_signed(to)) return nullptr;
  return with_float(from, [&](const auto& source) {
    return with_integer(to, [&](const auto& target) -> Kernel::Function {
      using Target = std::decay_t<decltype(target)>;
      if constexpr (std::is_signed_v<typename Target::Exact>)
        return stochastic_convert<std::decay_t<decltype(source)>, Target>;
      else
        return nullptr;
    });
  });
}

}  // namespace hloom::interp
