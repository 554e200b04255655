#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Puts a copy wherever a value would have to lie in two places (memory spaces, or splits): where a tuple, an element, a
/// bitcast or a barrier says another place than what it names; at the base of a dynamic-update-slice in another space
/// than its result; inside a fusion where what it returns is what it is given, or what it updates.
/// propagate-memory-space finds no conflict afterwards.
/// Errors: those of FusedValues. Cost: linear, and a look at its fusion for each copy.
Expected<Changed> separate_memory_spaces(hlo::Module&);

}  // namespace hloom::passes
