// Walks a module for passes that put several instructions in the place of one.
#pragma once

#include <functional>

#include "passes/match.h"
#include "passes/pass.h"

namespace hloom::passes {

/// What stands for an instruction from now on: an instruction of the same computation and a compatible shape; null, it
/// stays.
using Expansion = std::function<Expected<Instruction*>(Instruction&)>;

/// Puts `expansion(i)` in the place of each `i` of that opcode and removes `i`, side effects or not. What came before
/// and after it by control edges comes before and after what the expansion appended without operands, and the one
/// before the other. A result in another layout than i's is copied into it. Computations may be added on the way.
/// Cost: linear.
Expected<Changed> expand(hlo::Module&, Opcode, const Expansion& expansion);

}  // namespace hloom::passes
