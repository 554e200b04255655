// LLVM IR that people bring as text, such as the `.ll` files that hloom dumps.
//
//   std::string text = TRY(jit::asm_of_text(ll, "fusion.2.ll", jit::host_target()));
#pragma once

#include <string>
#include <string_view>

#include "base/target.h"
#include "hloom/error.h"

namespace hloom::jit {

/// The IR, read, verified and printed again. `file_name` is what messages call it.
/// Errors: InvalidArgument, with line and column, if it does not parse; with LLVM's words if it does not verify, is for
///         another architecture than the target's, or ends LLVM, which then leaks what it was working on.
/// One call at a time in a process, for LLVM's failures are caught by handlers that are the process's.
Expected<std::string> llvm_of_text(std::string_view text, std::string_view file_name, const base::Target&);

/// As llvm_of_text(), but gives the assembly that compile_object() would make of it.
/// Errors: also Internal, with LLVM's words, if it cannot generate code.
Expected<std::string> asm_of_text(std::string_view text, std::string_view file_name, const base::Target&);

}  // namespace hloom::jit
