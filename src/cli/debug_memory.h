// Runs under the watch of --debug-memory.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "cli/options.h"
#include "cli/source.h"
#include "compiler/compile.h"

namespace hloom::cli {

/// How to compile a program whose runs are watched.
compiler::Options watched(compiler::Options);

/// Compiles the program and runs it once, watched; `arguments` by device. Says how it went if it went well.
/// Errors: those of reading, compiling and running; Internal if something is wrong.
Expected<> run_watched(const Options&, const Source&, const std::vector<std::vector<hlo::Literal>>& arguments);

}  // namespace hloom::cli
