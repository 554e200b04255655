#include <filesystem>
#include <functional>

#include "base/fail.h"
#include "base/try.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/debug_memory.h"
#include "cli/demands.h"
#include "cli/host_files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/results.h"
#include "cli/tables.h"
#include "compiler/check.h"
#include "compiler/checked_run.h"
#include "compiler/compile.h"
#include "compiler/dynamic_border.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/show.h"
#include "interp/interpret.h"
#include "passes/expand_dynamic_sizes.h"
#include "runtime/cpus.h"
#include "runtime/devices.h"

namespace hloom::cli {
namespace {

using Arguments = std::vector<std::vector<hlo::Literal>>;

Expected<Results> run_interpreted(const Source& source, const hlo::Module& module, const Devices& devices,
                                  const Arguments& arguments, HostFiles& host) {
  const Progress progress("interpreting " + source.path);
  std::vector<std::vector<hlo::Literal>> values;
  for (const auto& leaves : arguments) values.push_back(compiler::arguments_of(module, leaves));
  interp::Options options;
  options.replicas = devices.replicas;
  options.partitions = devices.partitions;
  options.hosts = host.transfers();
  const std::vector<hlo::Literal> of_device = TRY(interp::interpret_devices(module, values, options));
  Results results;
  for (const hlo::Literal& value : of_device) {
    results.emplace_back();
    for (const hlo::Literal* leaf : hlo::leaves(value)) results.back().push_back(*leaf);
  }
  return results;
}

/// Files of a folder; the first one that cannot be written is told.
class Dump {
 public:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {
    std::error_code problem;
    if (!folder_.empty()) std::filesystem::create_directories(folder_, problem);
  }
  void write(const std::string& name, const std::string& text) {
    ++count_;
    if (!result_) return;
    result_ = write_file(folder_ + "/" + name, text);
  }
  int count() const { return count_; }
  const Expected<>& result() const { return result_; }

 private:
  std::string folder_;
  int count_ = 0;
  Expected<> result_;
};

Expected<compiler::Compiled> compile_and_dump(const Options& options, const Source& source,
                                              std::unique_ptr<hlo::Module> module) {
  const Progress progress("compiling " + source.path);
  Dump dump(options.dump);
  std::vector<passes::PassTime> pass_times;
  compiler::Options compile = TRY(compile_options(options));
  if (options.debug_memory) compile = watched(std::move(compile));
  if (options.time) compile.pass_times = &pass_times;
  const auto write = [&](const std::string& name, const std::string& text) { dump.write(name, text); };
  if (!options.dump.empty()) compile.dump = write;
  compiler::Compiled compiled = TRY(compiler::compile(std::move(module), compile));
  if (!options.dump.empty()) TRY(compiler::dump_compiled(compiled, compile, dump.count(), write));
  TRY(dump.result());
  if (options.time) say(time_table(compiled.stage_seconds, pass_times) + "\n" + code_words(compiled));
  return compiled;
}

Expected<Results> run_compiled(const Options& options, const Source& source, std::unique_ptr<hlo::Module> module,
                               const Arguments& arguments, HostFiles& host) {
  compiler::Compiled compiled = TRY(compile_and_dump(options, source, std::move(module)));
  const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled.module),
                           shapes = compiler::result_leaves(*compiled.module);
  const auto executor = TRY(compiler::make_executor(std::move(compiled)));
  const runtime::Devices devices(*executor, options.threads > 0 ? options.threads : runtime::available_cpus());

  const Progress progress("running " + source.path);
  Profile profile;
  const std::function<void(const runtime::StepEvent&)> observer = [&](const runtime::StepEvent& e) { profile.add(e); };
  runtime::RunOptions run_options;
  if (options.profile) run_options.observer = &observer;
  run_options.hosts = host.transfers();
  profile.start();
  Results results = TRY(compiler::execute_literals(devices, parameters, shapes, arguments, run_options,
                                                   collective_timeout(options)));
  if (options.profile) say(profile.table());
  return results;
}

// Status 1 if an instruction makes one.
Expected<int> check_nans(const Options& options, const Source& source, std::unique_ptr<hlo::Module> module,
                         const Arguments& arguments, HostFiles& host) {
  compiler::CheckOptions check;
  check.compile = TRY(compile_options(options));
  check.hosts = host.transfers();
  const Progress progress("looking for NaNs in " + source.path);
  const compiler::NotFinite first = TRY(compiler::first_not_finite_devices(std::move(module), arguments, check));
  if (first.arguments > 0)
    say(source.path + ": " + std::to_string(first.arguments) + " arguments have NaNs or infinities");
  say(source.path + ": " + (first.found ? "first NaN or infinity: " + to_string(first.place)
                                        : std::string("no instruction makes a NaN or an infinity")));
  return first.found ? kBad : kGood;
}

// Those that say how to compile say nothing to the interpreter.
std::string_view useless_with_interpret(const Options& options) {
  if (options.profile) return "--profile";
  if (options.check_nans) return "--check-nans";
  if (options.debug_memory) return "--debug-memory";
  if (options.perf) return "--perf";
  if (!options.require_in_place.empty()) return "--require-in-place";
  if (options.memory_limit > 0) return "--memory-limit";
  if (options.concurrency_memory > 0) return "--concurrency-memory";
  if (options.time) return "--time";
  if (!options.dump.empty()) return "--dump";
  if (!options.cpu.empty()) return "--cpu";
  return "";
}

}  // namespace

Expected<int> run(const Options& options) {
  if (const std::string_view word = useless_with_interpret(options); options.interpret && !word.empty()) {
    say("hloom: " + std::string(word) + " tells about compiled code; leave out --interpret");
    return kWrongWords;
  }
  if (options.debug_memory && options.profile) {
    say("hloom: with --debug-memory times mean nothing; leave out --profile");
    return kWrongWords;
  }
  const Source source = TRY(read_source(options));
  auto module = TRY(read_module(source, options));
  const Devices devices = TRY(devices_of(*module));
  Arguments arguments = TRY(read_arguments(options, source, *module, devices));
  // Where sizes are known at run time only, both take and give them beside.
  const std::vector<Shape> parameters = compiler::parameter_leaves(*module), written = compiler::result_leaves(*module);
  if (compiler::has_dynamic_leaf(parameters) || compiler::has_dynamic_leaf(written)) {
    TRY(passes::expand_dynamic_sizes(*module));
    for (auto& of_device : arguments) of_device = TRY(compiler::with_sizes(parameters, std::move(of_device)));
  }
  HostFiles host = TRY(HostFiles::read(options, *module, devices));
  if (options.check_nans) return check_nans(options, source, std::move(module), arguments, host);
  Results results = options.interpret ? TRY(run_interpreted(source, *module, devices, arguments, host))
                                      : TRY(run_compiled(options, source, std::move(module), arguments, host));
  TRY(host.write(options));
  for (auto& of_device : results) of_device = compiler::without_sizes(written, std::move(of_device));
  return deliver(options, source, results);
}

}  // namespace hloom::cli
