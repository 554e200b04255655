#pragma once

#include "passes/dynamic_rules.h"
#include "passes/pass.h"

namespace hloom::passes {

/// Makes batch-norm-training, -inference and -grad of elementwise ops and sums over all dimensions but the features'.
/// Types narrower than f32 are computed in f32 and rounded once. The variance is the mean of squared differences from
/// the mean, not a difference of squares. Cost: linear. No errors.
Expected<Changed> expand_batch_norm(hlo::Module&);

/// What stands for a batch norm on arrays of bounds of which `sizes` count, as of operand 0. Needs: none for the features.
Instruction* expanded_batch_norm(Instruction&, const DimSizes& sizes);

}  // namespace hloom::passes
