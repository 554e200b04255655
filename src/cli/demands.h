// What the command line says about compiling.
#pragma once

#include "cli/options.h"
#include "compiler/compile.h"

namespace hloom::cli {

compiler::Options compile_options(const Options&);

}  // namespace hloom::cli
