// Runs that watch what is done to memory, to find faults of plans, kernels and routines:
//
//   - what a step reads is the value that its instruction names, not another one and nothing that is over;
//   - what a step makes is written wholly, and does not depend on memory that holds nothing;
//   - a step changes what it makes and nothing else, an update in place no more than its window;
//   - no kernel touches an element outside of its arguments (Options::check_bounds).
//
// A run takes twice the memory and some times as long. Values come out as without.
#pragma once

#include <memory>

#include "compiler/compile.h"
#include "runtime/executor.h"

namespace hloom::compiler {

/// An executor for the program. If it was compiled with `check_memory`, its runs are checked, and fail with Internal if
/// something is wrong, naming instruction, source line, iterations of the loops around it, and the memory.
/// Errors: those of Executor::create(); Internal, naming the instruction, if a step is given memory that is none of its
///         operands' and results'.
Expected<std::unique_ptr<runtime::Executor>> make_executor(Compiled, runtime::ExecutorOptions = {});

}  // namespace hloom::compiler
