// The rules of simplify_algebra, by family. Each gives null if it finds nothing.
#pragma once

#include "passes/match.h"

namespace hloom::passes::rules {

Instruction* arithmetic(Instruction& i);   ///< add, multiply, divide, negate, maximum …
Instruction* logic(Instruction& i);        ///< and, or, xor, not of preds and integers
Instruction* comparison(Instruction& i);   ///< compare
Instruction* selection(Instruction& i);    ///< select, clamp
Instruction* conversion(Instruction& i);   ///< convert, bitcast-convert, complex, real, imag
Instruction* scalar_first(Instruction& i); ///< an elementwise op of spread scalars

}  // namespace hloom::passes::rules
