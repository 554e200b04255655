// What the kinds of steps share.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "shrink/shrink.h"

namespace hloom::shrink {

using hlo::Computation;
using hlo::Dims;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

/// A change to a copy of the program it was proposed for. False if it does not apply.
struct Step {
  std::string what;
  std::function<bool(Program&)> apply;
  bool removes_dead = false;  ///< also what was dead before
};
using Steps = std::vector<Step>;

Steps fewer_dead(const Program&);
Steps fewer_results(const Program&);
Steps simpler_control(const Program&);
Steps replaced_instructions(const Program&);
Steps smaller_dims(const Program&);
Steps smaller_numbers(const Program&);
Steps plainer_border(const Program&);

/// Instructions that nothing uses, other than parameters and roots.
std::unordered_set<std::string> dead_instructions(const hlo::Module&);
/// Removes what nothing needs: dead instructions other than those named, computations that nobody calls, parameters of
/// the entry, of calls and fusions that are not read, with their arguments; brings the header in line.
void clean(Program&, const std::unordered_set<std::string>& kept);

/// How large a program is: less is better.
double cost(const Program&);

/// The instruction of this name, or null.
Instruction* find(hlo::Module&, const std::string& name);
/// A copy: the module's clone, names and all.
Program copy(const Program&);

/// A value of this shape made of small numbers, in the computation: a constant, broadcast where it is large. Null for
/// tokens and the like.
Instruction* add_numbers(Computation&, const Shape&, std::int64_t value);
/// The first elements of each dimension. Needs: `dims` no larger than the literal's.
Literal cut(const Literal&, const Dims& dims);

}  // namespace hloom::shrink
