// The opcodes of HLO.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace hloom::hlo {

enum class Opcode : std::uint8_t {
#define HLOOM_OPCODE(enumerator, text, arity, kind) enumerator,
#include "hlo/opcodes.def"
#undef HLOOM_OPCODE
};

inline constexpr int kNumOpcodes = 0
#define HLOOM_OPCODE(enumerator, text, arity, kind) +1
#include "hlo/opcodes.def"
#undef HLOOM_OPCODE
    ;

/// The families of hlo-ops 1.
enum class OpcodeKind : std::uint8_t {
  Elementwise,
  Movement,
  Reduction,
  Contraction,
  Control,
  Collective,
  SideEffect,
  Generator,
  Structural
};

std::string_view name(Opcode);                         ///< as in text: "reduce-window"
std::optional<Opcode> opcode_named(std::string_view);  ///< constant time
OpcodeKind kind(Opcode);
/// An elementwise function of tens of machine instructions: exp, log, power and the like; not roots.
bool is_function(Opcode);
/// Number of operands, or -1 where any number may come.
int arity(Opcode);
/// Result element i depends on element i of each operand alone (or of a scalar one, as in select and clamp).
/// True for copy too.
bool is_elementwise(Opcode);
std::ostream& operator<<(std::ostream&, Opcode);

}  // namespace hloom::hlo
