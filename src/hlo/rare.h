// Instructions that hardly ever run.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hloom::hlo {

/// Says that an instruction hardly ever runs, so that code of its own is not worth its compilation where a routine can do it.
inline void mark_rare(Instruction& i) { i.mutable_annotations().decisions["rare"] = std::to_string(1); }
inline bool is_rare(const Instruction& i) { return i.annotations().decisions.contains("rare"); }

}  // namespace hloom::hlo
