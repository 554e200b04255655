// What the command line demands of a program's memory.
#pragma once

#include "cli/options.h"
#include "compiler/memory_limits.h"

namespace hloom::cli {

compiler::MemoryDemands demands_of(const Options&);

}  // namespace hloom::cli
