#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes each rng of the module's state, bits of Philox with key 0 from there on, and arithmetic: each element of a
/// uniform distribution takes a word of 64 bits, of a normal one two. What reads the state, here or in a computation it
/// calls, comes in the order of the instructions, by control edges.
/// Cost: linear. No errors.
Expected<Changed> expand_rng(hlo::Module&);

}  // namespace hloom::passes
