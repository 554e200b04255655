// Handlers that users registered, as routines.
#pragma once

#include <memory>
#include <string_view>

#include "hloom/ffi.h"
#include "library/custom_call.h"

namespace hloom::library {

/// The handler of a target, or null. Thread-safe.
std::shared_ptr<const ffi::Handler> handler_of(std::string_view target);

/// One call of the handler. The plan keeps all that it sees. No errors; when it runs, the handler's.
RoutinePlan plan_handler(CustomCallProblem, std::shared_ptr<const ffi::Handler>);

}  // namespace hloom::library
