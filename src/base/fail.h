// fail(): builds an Error from a code and the parts of its message.
#pragma once

#include <sstream>

#include "hloom/error.h"

namespace hloom::base {

/// Error with the message made of `parts`, each written by operator<<.
///     return fail(Code::InvalidArgument, name, ": expects 2 operands, found ", n);
template <typename... Parts>
Error fail(Code code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  return Error(code, std::move(message).str());
}

}  // namespace hloom::base

namespace hloom {
using base::fail;
}  // namespace hloom
