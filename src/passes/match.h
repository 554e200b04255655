// What a rule asks of an instruction.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/instruction.h"

namespace hloom::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

/// Row-major, untiled, in memory space 0, without dynamic dimensions; a tuple, if all its leaves are. Opaque handles
/// and tokens are. Rules that move indices need it.
bool is_plain(const Shape&);
/// The instruction and its operands are.
bool is_plain(const Instruction&);

inline bool is(const Instruction* i, Opcode opcode) { return i->opcode() == opcode; }
/// Used by one operand slot and nothing else.
inline bool has_one_use(const Instruction* i) { return i->users().size() == 1 && !i->is_root(); }

/// The scalar of which each element of `i` is a copy, seen through broadcasts and reshapes: a scalar instruction, or
/// `i` itself if it is one; null if it is no such array.
Instruction* splat_source(Instruction* i);
/// The element that all elements of `i` equal to the bit, if constants say so.
std::optional<hlo::Literal> splat_constant(Instruction* i);

/// Of an integer or pred array: the number all its elements equal, if known. u64 keeps its bits.
std::optional<std::int64_t> constant_integer(Instruction* i);
/// Of any real array: the number all its elements equal, if known.
std::optional<double> constant_number(Instruction* i);
/// All elements are this number, for floats with this sign of zero; never for NaN.
bool is_number(Instruction* i, double value);
inline bool is_true(Instruction* i) { return i->shape().dtype() == DType::Pred && constant_integer(i) == 1; }
inline bool is_false(Instruction* i) { return i->shape().dtype() == DType::Pred && constant_integer(i) == 0; }

/// All bits of the elements are 1: true, -1, the largest unsigned.
bool is_all_ones(Instruction* i);

/// The opcode that combines two scalar parameters of `computation` in order, if that is all it does: add, maximum, or
/// … of parameter 0 and parameter 1 (either way round where that makes no difference).
std::optional<Opcode> simple_combiner(const hlo::Computation& computation);
/// The computation gives parameter `number` itself.
bool returns_parameter(const hlo::Computation& computation, std::int64_t number);

/// Operands may change places without a change of value.
bool is_commutative(const Instruction& i);

/// Dims with those of size 1 left out.
Dims without_units(const Dims&);

}  // namespace hloom::passes
