#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Takes out of a loop's state what need not be in it: a leaf that no iteration changes is read from outside after the
/// loop, and a small constant or iota among them is made anew inside; of leaves that always are equal one stays; what
/// only computes itself goes. Needs: no loop shares its computations (inline_calls() sees to that); those that do are
/// left alone. Cost: linear, times the number of splits until equal leaves are known, at most 8. No errors.
Expected<Changed> shrink_loops(hlo::Module&);

}  // namespace hloom::passes
