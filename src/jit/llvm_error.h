// LLVM's errors as ours.
#pragma once

#include <llvm/Support/Error.h>

#include <string_view>

#include "base/fail.h"
#include "hloom/error.h"

namespace hloom::jit {

/// "what: LLVM's words". Needs: an error.
inline Error from_llvm(hloom::Code code, std::string_view what, llvm::Error error) {
  return fail(code, what, ": ", llvm::toString(std::move(error)));
}

}  // namespace hloom::jit
