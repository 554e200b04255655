// Padding that is made where it is read.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hloom::hlo {

/// Says that a pad is an array in name alone: the kernel of the convolution that reads it has some of its lines at a time.
/// Needs: a convolution's first operand, read by nothing else.
inline void mark_staged(Instruction& pad) { pad.mutable_annotations().decisions["staged"] = std::to_string(1); }
inline bool is_staged(const Instruction& i) { return i.annotations().decisions.contains("staged"); }

}  // namespace hloom::hlo
