#include "hlo/identity.h"

#include <cmath>

#include "base/check.h"
#include "hlo/narrow_float.h"

namespace hloom::hlo {

bool has_identity(Opcode combine, DType type) {
  if (is_complex(type)) return false;
  const bool real = is_floating(type);
  switch (combine) {
    case Opcode::Add:
    case Opcode::Multiply: return real || is_integral(type) || type == DType::Pred;
    case Opcode::Maximum:
    case Opcode::Minimum: return real ? float_format(type).has_infinity() : is_integral(type) || type == DType::Pred;
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor: return is_integral(type) || type == DType::Pred;
    default: return false;
  }
}

std::uint64_t identity_bits(Opcode combine, DType type) {
  const int width = type == DType::Pred ? 1 : bit_width(type);
  const std::uint64_t ones = width == 64 ? ~0ull : (1ull << width) - 1;
  // Stored sub-byte signed integers are sign-extended to their byte.
  const auto stored = [&](std::uint64_t bits) -> std::uint64_t {
    if (is_signed(type) && width < 8 && ((bits >> (width - 1)) & 1) != 0) return bits | (0xFFull & ~ones);
    return bits;
  };
  const auto real = [&](double v) { return encode_float(float_format(type), v); };
  switch (combine) {
    case Opcode::Add: return is_floating(type) ? real(-0.0) : 0;
    case Opcode::Multiply: return is_floating(type) ? real(1.0) : stored(1 & ones);
    case Opcode::Maximum:
      if (is_floating(type)) return real(-INFINITY);
      return is_signed(type) ? stored(1ull << (width - 1)) : 0;
    case Opcode::Minimum:
      if (is_floating(type)) return real(INFINITY);
      return is_signed(type) ? ones >> 1 : ones;
    case Opcode::And: return stored(ones);
    case Opcode::Or:
    case Opcode::Xor: return 0;
    default: HLOOM_CHECK(!"an op that folds"); return 0;
  }
}

}  // namespace hloom::hlo
