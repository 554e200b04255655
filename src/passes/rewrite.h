// Walks a module with a rule that replaces one instruction at a time.
#pragma once

#include <functional>

#include "passes/pass.h"

namespace hloom::passes {

/// What to put in an instruction's place: null, it stays as it is; itself, it was changed in place; or another
/// instruction of the same computation and shape, new or old.
using Rule = std::function<hlo::Instruction*(hlo::Instruction&)>;

/// Applies `rule` to all live instructions, operands before users, also to those that the rule makes, until it finds
/// nothing at any place, or `kMaxSteps` at one place. Fusions' computations are walked too. Cost: linear.
Changed rewrite(hlo::Module&, const Rule& rule);
Changed rewrite(hlo::Computation&, const Rule& rule);

}  // namespace hloom::passes
