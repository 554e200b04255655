// LAPACK custom calls, as JAX's CPU lowering writes them; docs/custom-calls.md has the table.
#pragma once

#include <string_view>
#include <vector>

#include "library/custom_call.h"

namespace hloom::library {

/// Whether the target is one of the table, with or without the library.
bool is_lapack(std::string_view target);

/// One call whose blocks are the matrices of the batch. Where output and operand are one memory, nothing is copied.
/// Needs: is_lapack(target).
/// Errors: Unimplemented if there is no library; InvalidArgument, with the target in front, if an operand, result or
///         attribute is not what the target takes. When it runs: Internal, where LAPACK refuses an argument and the
///         target has no output for that.
Expected<RoutinePlan> plan_lapack(const CustomCallProblem&);

/// The layouts that the target's operands and results have: matrices column by column, all else row-major; leaves in the order of
/// CustomCallProblem, whose own layouts do not matter. Needs: is_lapack(target). Errors: InvalidArgument as above.
struct LapackLayouts {
  std::vector<Layout> operands, results;
};
Expected<LapackLayouts> lapack_layouts(const CustomCallProblem&);

}  // namespace hloom::library
