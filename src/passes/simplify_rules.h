// The rules of simplify_algebra and simplify_movement, by family. Each gives null if it finds nothing.
// Needs: plain shapes (is_plain).
#pragma once

#include "passes/match.h"

namespace hloom::passes::rules {

Instruction* arithmetic(Instruction& i);    ///< add, multiply, divide, negate, maximum …
Instruction* logic(Instruction& i);         ///< and, or, xor, not of preds and integers
Instruction* comparison(Instruction& i);    ///< compare
Instruction* selection(Instruction& i);     ///< select
Instruction* conversion(Instruction& i);    ///< convert, bitcast-convert, complex, real, imag
Instruction* scalar_first(Instruction& i);  ///< an elementwise op of spread scalars

Instruction* constant(Instruction& i);
Instruction* iota(Instruction& i);
Instruction* reshape(Instruction& i);
Instruction* broadcast(Instruction& i);
Instruction* transpose(Instruction& i);
Instruction* reverse(Instruction& i);

Instruction* slice(Instruction& i);
Instruction* pad(Instruction& i);
Instruction* concatenate(Instruction& i);

Instruction* dynamic_slice(Instruction& i);
Instruction* dynamic_update_slice(Instruction& i);
Instruction* select_of_update(Instruction& i);  ///< select(p, dynamic-update-slice(x, …), x)
Instruction* gather(Instruction& i);
Instruction* scatter(Instruction& i);

Instruction* reduce(Instruction& i);
Instruction* sort(Instruction& i);
Instruction* dot(Instruction& i);
Instruction* dimension_size(Instruction& i);

}  // namespace hloom::passes::rules
