// Puts a computation's instructions in the place of what calls it.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace hloom::hlo {

/// Copies the instructions of `callee` to the end of `into`, `arguments[i]` in place of parameter i, and gives the
/// root's copy. Called computations are shared. Each copy without operands or effects on order of its own comes after
/// `before` and before `after`, if there are any. Needs: as many arguments as parameters, of `into`.
Instruction* inline_computation(const Computation& callee, const std::vector<Instruction*>& arguments,
                                Computation& into, const std::vector<Instruction*>& before = {},
                                const std::vector<Instruction*>& after = {});

}  // namespace hloom::hlo
