// What the command line says about compiling.
#pragma once

#include "cli/options.h"
#include "compiler/compile.h"
#include "hloom/error.h"

namespace hloom::cli {

/// Errors: those of reading the budget file, and of parse_budget().
Expected<compiler::Options> compile_options(const Options&);

}  // namespace hloom::cli
