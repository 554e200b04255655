// What goes element by element.
#include <algorithm>
#include <array>

#include "generate/scope.h"

namespace hloom::generate {
namespace {

bool is_real(DType t) { return is_floating(t); }
bool is_int(DType t) { return is_integral(t); }

bool is_small(const Scope& s, const Instruction* x) { return s.bound(x) != kUnbounded; }

bool draw_arithmetic(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  if (y == nullptr) return false;
  if (s.random().chance(30)) std::swap(x, y);
  const double a = s.bound(x), b = s.bound(y);
  const Opcode op = s.random().of({Opcode::Add, Opcode::Add, Opcode::Add, Opcode::Multiply, Opcode::Multiply,
                                   Opcode::Subtract, Opcode::Maximum, Opcode::Minimum});
  const double complex = is_complex(x->shape().dtype()) ? 2 : 1;
  const double bound = op == Opcode::Multiply                        ? complex * a * b
                       : op == Opcode::Add || op == Opcode::Subtract ? a + b
                                                                     : std::max(a, b);
  return s.keep(s.add(op, {x, y}), bound) != nullptr;
}

// Quotients are exact by themselves, but are no integers.
bool draw_division(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().dtype() != DType::Pred; });
  if (x == nullptr) return false;
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  const Opcode op = s.random().of({Opcode::Divide, Opcode::Divide, Opcode::Remainder});
  return s.add(op, {x, y}) != nullptr;
}

bool draw_bits(Scope& s) {
  Instruction* x =
      s.pick([](const Instruction& i) { return is_int(i.shape().dtype()) || i.shape().dtype() == DType::Pred; });
  if (x == nullptr) return false;
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  return s.add(s.random().of({Opcode::And, Opcode::Or, Opcode::Xor, Opcode::ShiftLeft, Opcode::ShiftRightLogical,
                              Opcode::ShiftRightArithmetic, Opcode::And, Opcode::Or, Opcode::Mulhi}),
               {x, y}) != nullptr;
}

bool draw_sign(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().dtype() != DType::Pred; });
  if (x == nullptr) return false;
  const Opcode op = s.random().of({Opcode::Negate, Opcode::Abs, Opcode::Sign, Opcode::Negate, Opcode::Copy});
  const bool real = !is_complex(x->shape().dtype()) || op == Opcode::Negate || op == Opcode::Copy;
  const bool wraps = is_unsigned(x->shape().dtype());
  return s.keep(s.add(op, {x}), real && !wraps ? s.bound(x) : kUnbounded) != nullptr;
}

bool draw_rounding(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return is_real(i.shape().dtype()); });
  if (x == nullptr) return false;
  const Opcode op = s.random().of({Opcode::Floor, Opcode::Ceil, Opcode::RoundNearestEven, Opcode::RoundNearestAfz});
  return s.keep(s.add(op, {x}), s.bound(x)) != nullptr;
}

bool draw_integer_unary(Scope& s) {
  Instruction* x =
      s.pick([](const Instruction& i) { return is_int(i.shape().dtype()) || i.shape().dtype() == DType::Pred; });
  return s.add(s.random().of({Opcode::Not, Opcode::Not, Opcode::Popcnt, Opcode::CountLeadingZeros}), {x}) != nullptr;
}

// Square roots are exact; the rest is held to bounds, and what depends on it too.
bool draw_function(Scope& s) {
  Instruction* x =
      s.pick([](const Instruction& i) { return is_real(i.shape().dtype()) || is_complex(i.shape().dtype()); });
  if (x == nullptr) return false;
  if (!s.draw().wild && s.random().chance(70)) return s.add(Opcode::Sqrt, {x}) != nullptr;
  const Opcode op = s.random().of(
      {Opcode::Exponential, Opcode::Exponential, Opcode::Exponential, Opcode::Log, Opcode::Tanh, Opcode::Rsqrt,
       Opcode::Rsqrt, Opcode::LogPlusOne, Opcode::ExponentialMinusOne, Opcode::Logistic, Opcode::Sine, Opcode::Cosine,
       Opcode::Erf, Opcode::Tan, Opcode::Cbrt, Opcode::Atan2, Opcode::Power, Opcode::Asin, Opcode::Acosh});
  if (op == Opcode::Atan2 || op == Opcode::Power)
    return s.add(op, {x, s.make(x->shape().dtype(), x->shape().dims())}) != nullptr;
  return s.add(op, {x}) != nullptr;
}

bool draw_compare(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  const DType type = x->shape().dtype();
  return s.add(Opcode::Compare, {x, y}, [&](Instruction& i) {
    auto& attr = i.mutable_attr<hlo::CompareAttr>();
    attr.direction = s.random().of({hlo::Direction::Eq, hlo::Direction::Ne, hlo::Direction::Ge, hlo::Direction::Gt,
                                    hlo::Direction::Le, hlo::Direction::Lt});
    attr.type = is_signed(type)                          ? hlo::Comparison::Signed
                : is_int(type) || type == DType::Pred    ? hlo::Comparison::Unsigned
                : is_real(type) && s.random().chance(15) ? hlo::Comparison::TotalOrder
                                                         : hlo::Comparison::Float;
  }) != nullptr;
}

bool draw_select(Scope& s) {
  Instruction* p = s.pick([](const Instruction& i) { return i.shape().dtype() == DType::Pred; });
  Instruction* x = nullptr;
  if (p != nullptr && !p->shape().is_scalar())
    x = s.pick([&](const Instruction& i) { return i.shape().dims() == p->shape().dims(); });
  if (x == nullptr) x = s.pick();
  if (x == nullptr) return false;
  if (p == nullptr || !(p->shape().is_scalar() || p->shape().dims() == x->shape().dims()))
    p = s.make(DType::Pred, s.random().chance(15) ? Dims{} : x->shape().dims());
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  if (s.random().chance(50)) std::swap(x, y);
  return s.keep(s.add(Opcode::Select, {p, x, y}), std::max(s.bound(x), s.bound(y))) != nullptr;
}

bool draw_clamp(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return !is_complex(i.shape().dtype()); });
  if (x == nullptr) return false;
  const DType type = x->shape().dtype();
  const Dims dims = s.random().chance(50) ? Dims{} : x->shape().dims();
  Instruction* low = s.splat(type, s.random().pick(-3, 0), dims);
  Instruction* high = s.splat(type, s.random().pick(1, 5), dims);
  return s.keep(s.add(Opcode::Clamp, {low, x, high}), is_small(s, x) ? 5 : kUnbounded) != nullptr;
}

bool draw_convert(Scope& s) {
  Instruction* x = s.pick();
  return s.convert(x, s.type()) != nullptr;
}

bool draw_bitcast_convert(Scope& s) {
  Instruction* x = s.pick(
      [](const Instruction& i) { return bit_width(i.shape().dtype()) >= 8 && i.shape().dtype() != DType::Pred; });
  if (x == nullptr) return false;
  const DType to = s.random().of({DType::U32, DType::S32, DType::F32, DType::U8, DType::U16, DType::U64, DType::F64,
                                  DType::BF16, DType::S64, DType::S8});
  Dims dims = x->shape().dims();
  const int from_bits = bit_width(x->shape().dtype()), to_bits = bit_width(to);
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  if (from_bits < to_bits) {
    if (dims.empty() || dims.back() != to_bits / from_bits) return false;
    dims.pop_back();
  }
  // Bits that are no number in particular go to integers unless anything goes.
  if (!is_int(to) && !s.draw().wild) return false;
  return s.add(Opcode::BitcastConvert, {x}, {}, Shape::array(to, dims)) != nullptr;
}

bool draw_complex(Scope& s) {
  if (Instruction* z = s.pick([](const Instruction& i) { return is_complex(i.shape().dtype()); });
      z && s.random().chance(60)) {
    const Opcode op = s.random().of({Opcode::Real, Opcode::Imag});
    return s.keep(s.add(op, {z}), s.bound(z)) != nullptr;
  }
  Instruction* x =
      s.pick([](const Instruction& i) { return i.shape().dtype() == DType::F32 || i.shape().dtype() == DType::F64; });
  if (x == nullptr) return false;
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  return s.keep(s.add(Opcode::Complex, {x, y}), std::max(s.bound(x), s.bound(y))) != nullptr;
}

bool draw_is_finite(Scope& s) {
  return s.add(Opcode::IsFinite, {s.pick([](const Instruction& i) { return is_real(i.shape().dtype()); })}) != nullptr;
}

bool draw_reduce_precision(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return is_real(i.shape().dtype()); });
  return s.add(Opcode::ReducePrecision, {x}, [&](Instruction& i) {
    auto& attr = i.mutable_attr<hlo::ReducePrecisionAttr>();
    attr.exponent_bits = s.random().pick(2, 8);
    attr.mantissa_bits = s.random().pick(0, 23);
  }) != nullptr;
}

constexpr std::array kFamilies = {
    Family{100, draw_arithmetic}, Family{10, draw_division}, Family{15, draw_bits},
    Family{12, draw_sign},        Family{4, draw_rounding},  Family{4, draw_integer_unary},
    Family{10, draw_function},    Family{25, draw_compare},  Family{25, draw_select},
    Family{6, draw_clamp},        Family{18, draw_convert},  Family{8, draw_bitcast_convert},
    Family{4, draw_complex},      Family{2, draw_is_finite}, Family{2, draw_reduce_precision},
};

}  // namespace

std::span<const Family> elementwise_families() { return kFamilies; }

}  // namespace hloom::generate
