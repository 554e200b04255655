// What the program can do. Each takes the words of its command and gives the exit status; errors are printed by the
// caller and mean status 1.
#pragma once

#include "cli/options.h"
#include "hloom/error.h"

namespace hloom::cli {

/// Runs the program once, compiled or interpreted, and delivers the results.
Expected<int> run(const Options&);
/// Compiles and runs for some time; prints figures.
Expected<int> bench(const Options&);
/// Compares compiled code with the interpreter, or with the kernel evaluated.
Expected<int> check(const Options&);
/// Runs passes and prints the module.
Expected<int> opt(const Options&);
/// Prints what a stage made.
Expected<int> show(const Options&);
/// Makes a program smaller while a script finds the fault in it, and prints it.
Expected<int> reduce(const Options&);

}  // namespace hloom::cli
