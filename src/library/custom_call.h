// Custom calls that are done by routines: LAPACK's, hloom's few others, and those that users register.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hloom/ffi.h"
#include "hloom/shape.h"
#include "library/routine.h"

namespace hloom::library {

/// What is known of a custom call before it runs.
struct CustomCallProblem {
  std::string target;
  std::string instruction;               ///< its name
  std::string backend_config;
  std::vector<Shape> operands, results;  ///< leaves, depth first, with their layouts
  /// The values of operands that are constant integer scalars: older programs pass sizes and flags so.
  std::vector<std::optional<std::int64_t>> scalars;
  std::string message;                   ///< error_message: what an assertion says
  ffi::Attributes attributes;            ///< plan_custom_call() reads them from backend_config
};

/// The calls that do it.
/// Errors: Unimplemented for a target that nobody knows, or that needs a library which is not there; InvalidArgument if
///         operands, results, layouts or attributes are not what the target takes. When it runs: what a handler says.
Expected<RoutinePlan> plan_custom_call(CustomCallProblem);

}  // namespace hloom::library
