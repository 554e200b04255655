// A compiled program on literals, as the command line and tests have them.
#pragma once

#include <span>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "runtime/devices.h"
#include "runtime/executor.h"
#include "runtime/threads.h"

namespace hloom::compiler {

/// Shapes of the leaves of the entry's parameters, and of its result, depth first, with the entry's layouts.
std::vector<Shape> parameter_leaves(const hlo::Module&);
std::vector<Shape> result_leaves(const hlo::Module&);

/// Runs a program once with all arguments donated. `arguments` and the results are leaves; tokens are among them.
/// Errors: InvalidArgument if the arguments' number, types or dimensions are not the program's; those of execute().
Expected<std::vector<hlo::Literal>> execute_literals(const runtime::Executor&, std::span<const Shape> parameters,
                                                     std::span<const Shape> results,
                                                     std::span<const hlo::Literal> arguments,
                                                     runtime::ThreadPool& pool = runtime::process_pool(),
                                                     const runtime::RunOptions& options = {});

/// The same on all devices at once, with results in memory of their own: arguments and results by device. Errors: as above, and those of Devices::execute().
Expected<std::vector<std::vector<hlo::Literal>>> execute_literals(
    const runtime::Devices&, std::span<const Shape> parameters, std::span<const Shape> results,
    std::span<const std::vector<hlo::Literal>> arguments, const runtime::RunOptions& options = {},
    std::chrono::milliseconds timeout = collectives::kDefaultTimeout);

}  // namespace hloom::compiler
