// What fusion asks of an instruction: how its kernel's loops go, what it costs, who may read it inside a kernel.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hloom::fusion {

/// The instruction that decides a kernel's loops.
enum class Hero : std::uint8_t { Loop, Reduce, Rows, Levels, Dot, Convolution, WindowUpdate, Scatter, Window, Routine };
std::string name(Hero);

/// The hero that an instruction is as a root, never Rows or Levels, which take several; Loop for elementwise work and moved indices.
Hero hero_of(const hlo::Instruction&);
/// Made anew wherever it is used, at no cost: scalar and splat constants, iotas, broadcasts of such.
bool is_free(const hlo::Instruction&);
/// At most one element.
bool is_tiny(const hlo::Instruction&);
/// A few instructions of the machine an element.
bool is_cheap(const hlo::Instruction&);
/// Its elements come from one place or another: a loop that is not cut where they change asks each element for it.
bool is_of_pieces(const hlo::Instruction&);
/// A reduce of one array that takes so few elements that they stand one after the other, without a loop: it costs what as many
/// elementwise instructions do, and goes where they go.
bool is_unrolled(const hlo::Instruction&);
/// The most elements of such a reduce; and of dimensions whose elements a kernel makes side by side because they share one.
inline constexpr std::int64_t kUnrolled = 4;

/// Operands of as many elements as the result.
std::int64_t large_operands(const hlo::Instruction&);

/// Whether `producer` may be computed inside the kernel of `user`, whose hero is `hero`; `aligned`: each element
/// of the kernel's results reads `user` at its own index alone. If not, `reason` says why.
bool may_fuse(const hlo::Instruction& producer, const hlo::Instruction& user, Hero hero, bool aligned,
              std::string& reason);

}  // namespace hloom::fusion
