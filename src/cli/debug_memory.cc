#include "cli/debug_memory.h"

#include "base/try.h"
#include "cli/demands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "compiler/checked_run.h"
#include "compiler/execute_literals.h"
#include "runtime/cpus.h"
#include "runtime/devices.h"

namespace hloom::cli {

compiler::Options watched(compiler::Options options) {
  options.check_memory = true;
  options.check_bounds = true;
  return options;
}

Expected<> run_watched(const Options& options, const Source& source,
                       const std::vector<std::vector<hlo::Literal>>& arguments) {
  auto module = TRY(read_module(source, options));
  const Progress progress("watching " + source.path);
  const compiler::Options compile = watched(TRY(compile_options(options)));
  compiler::Compiled compiled = TRY(compiler::compile(std::move(module), compile));
  const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled.module),
                           results = compiler::result_leaves(*compiled.module);
  const auto executor = TRY(compiler::make_executor(std::move(compiled)));
  const runtime::Devices devices(*executor, options.threads > 0 ? options.threads : runtime::available_cpus());
  TRY(compiler::execute_literals(devices, parameters, results, arguments, {}, collective_timeout(options)));
  say(source.path + ": each step keeps to its memory");
  return {};
}

}  // namespace hloom::cli
