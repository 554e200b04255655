// Which instructions are done by routines of library/, and how.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"
#include "library/custom_call.h"
#include "library/routine.h"

namespace hloom::compiler {

/// Whether a step is a routine's: a fusion around one fft, cholesky, triangular-solve, or sort or topk that library/ knows
/// how to do, or a custom call.
bool is_routine(const hlo::Instruction& step);

/// The instruction that a routine does: a step that is no fusion itself; behind slices of a sort, the sort.
const hlo::Instruction& routine_of(const hlo::Instruction& step);

/// What a fused routine is given for its operand: a convolution reads the slice of an array by itself.
const hlo::Instruction& read_by_routine(const hlo::Instruction& operand);

/// The calls that do a routine's work. Operands and results are numbered by their leaves.
/// Errors: Unimplemented, naming the instruction, if no routine does this, or not in these types and layouts;
///         InvalidArgument if a custom call's operands, results or attributes are not what its target takes.
Expected<library::RoutinePlan> plan_routine(const hlo::Instruction& step);

/// Writes what arena bytes each routine needs beside its operands and results: decisions["workspace_bytes"].
/// Errors: as plan_routine().
Expected<> note_workspaces(hlo::Module&);

/// What is known of a custom call before it runs.
library::CustomCallProblem custom_call_problem(const hlo::Instruction&);

}  // namespace hloom::compiler
