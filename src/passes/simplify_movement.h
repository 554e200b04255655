#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Simplifies what moves elements: chains of reshape, broadcast, transpose, slice, pad and concatenate, and those that
/// move nothing; dynamic slices and updates at constant places, of everything, or of what an update has just written;
/// gather and scatter of one window; reductions over dimensions of size 1; transposes that a dot can read through.
/// A broadcast keeps no dimension of size 1, an iota has one dimension, a splat is a broadcast scalar, an index vector
/// is scalars: so what is equal looks equal. Cost: linear. No errors.
Expected<Changed> simplify_movement(hlo::Module&);

}  // namespace hloom::passes
