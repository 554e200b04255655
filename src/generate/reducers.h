// The small computations that reductions, scatters and sorts apply.
#pragma once

#include "generate/scope.h"

namespace hloom::generate {

/// Associative and commutative, so that no order of application differs; Replace takes the second.
enum class Combiner : std::uint8_t { Add, Multiply, Maximum, Minimum, And, Or, Replace };

/// One that suits the type; Add most often.
Combiner draw_combiner(Scope&, DType, bool overwrite);
/// Scalars (a, b) → a∘b, one a module for each kind and type.
hlo::Computation* reducer(Scope&, Combiner, DType);
/// ((a, i), (b, j)) → the pair with the greater value, the smaller index among equals; a NaN wins.
hlo::Computation* argmax_reducer(Scope&, DType value, DType index, bool minimum);
/// Comparison of the first key, in total order if its values may be NaN.
hlo::Computation* comparator(Scope&, const std::vector<DType>& operands, bool total_order, bool greater);
/// Scalars (a, b) → pred, as select-and-scatter asks.
hlo::Computation* selector(Scope&, DType);

/// The neutral element as a scalar constant of the scope.
Instruction* neutral(Scope&, Combiner, DType);

}  // namespace hloom::generate
