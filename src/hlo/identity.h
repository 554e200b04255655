// The element that leaves others as they are when it is combined with them.
#pragma once

#include <cstdint>

#include "hlo/opcode.h"
#include "hloom/shape.h"

namespace hloom::hlo {

/// Whether a combining opcode (add, multiply, maximum, minimum, and, or, xor) has an identity among the numbers of a type.
/// A float type without infinities has none for maximum and minimum; complex types have none here. Any other opcode: no.
bool has_identity(Opcode combine, DType);

/// Its bits, as one element is stored; -0 for sums of floats. Needs: has_identity().
std::uint64_t identity_bits(Opcode combine, DType);

}  // namespace hloom::hlo
