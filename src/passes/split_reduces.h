#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes a reduce of very many elements two: of blocks of them, then of what the blocks give. So a sum's error grows with the
/// length of a block instead of the whole, and the blocks of a reduce to few elements can go to several threads. The grid is
/// cut by shapes and layouts alone. Sums of narrow floats are kept in f32 from the first to the last. A reduce of several
/// arrays, by a computation that is not one opcode, or in a packed or tiled layout, stays. Cost: linear. No errors.
Expected<Changed> split_reduces(hlo::Module&);

}  // namespace hloom::passes
