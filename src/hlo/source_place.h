// Where the user wrote what became an instruction.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hloom::hlo {

/// "FILE:LINE" from the instruction's metadata, or from the innermost frame that it names in the module's tables;
/// empty if neither says. Needs: an instruction in a computation of `module`.
std::string source_place(const Instruction&, const Module& module);

}  // namespace hloom::hlo
