#include "compiler/check.h"

#include <sstream>

#include "base/fail.h"
#include "base/try.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/debug_memory.h"
#include "cli/demands.h"
#include "cli/host_files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "compiler/bisect.h"
#include "compiler/check_kernel.h"

namespace hloom::cli {
namespace {

Expected<int> check_kernels(const Options& options, const Source& source) {
  const std::vector<kernels::Kernel> kernels = TRY(parse_kernels(source));
  const auto differences = TRY(compiler::check_kernels(kernels, options.random_seed, options.cpu));
  for (const compiler::KernelDifference& d : differences) say(source.path + ": " + d.kernel + ": " + d.message);
  if (!differences.empty()) return kBad;
  say(source.path + ": " + std::to_string(kernels.size()) + (kernels.size() == 1 ? " kernel does" : " kernels do") +
      " what they say");
  return kGood;
}

/// A program, and its arguments by device.
struct Loaded {
  std::unique_ptr<hlo::Module> module;
  std::vector<std::vector<hlo::Literal>> arguments;
  HostFiles host;
};

Expected<Loaded> load(const Options& options, const Source& source) {
  auto module = TRY(read_module(source, options));
  const Devices devices = TRY(devices_of(*module));
  auto arguments = TRY(read_arguments(options, source, *module, devices));
  HostFiles host = TRY(HostFiles::read(options, *module, devices));
  return Loaded{std::move(module), std::move(arguments), std::move(host)};
}

std::string percent(std::int64_t part, std::int64_t whole) {
  std::ostringstream text;
  text.precision(3);
  text << 100 * static_cast<double>(part) / static_cast<double>(whole) << " %";
  return std::move(text).str();
}

Expected<compiler::CheckReport> check_module(const Options& options, const Source& source) {
  Loaded loaded = TRY(load(options, source));
  if (options.debug_memory) TRY(run_watched(options, source, loaded.arguments));
  compiler::CheckOptions check;
  check.compile = TRY(compile_options(options));
  check.hosts = loaded.host.transfers();
  if (options.work > 0) check.work = options.work;
  const Progress progress("checking " + source.path);
  return compiler::check_devices(std::move(loaded.module), loaded.arguments, check);
}

Expected<int> bisect(const Options& options, const Source& source) {
  const Loaded loaded = TRY(load(options, source));
  const compiler::Options compile = TRY(compile_options(options));
  const Progress progress("bisecting " + source.path);
  const compiler::Bisection found = TRY(compiler::bisect_passes(*loaded.module, loaded.arguments, compile));
  if (found.stage.empty()) {
    say(source.path + ": " + std::to_string(found.stages) + " stages: all give the same results");
    return kGood;
  }
  say(source.path + ": the results part after " + found.stage + ": " + found.message);
  return kBad;
}

}  // namespace

Expected<int> check(const Options& options) {
  const Source source = TRY(read_source(options));
  if (source.form == Form::Kernel) return check_kernels(options, source);
  if (options.bisect_passes) return bisect(options, source);
  const compiler::CheckReport report = TRY(check_module(options, source));
  std::ostringstream words;
  words << source.path << ": " << report.instructions << " instructions, " << report.checks << " checks";
  if (report.checks < report.runs) words << " in " << report.runs << " steps";
  if (report.elements < report.elements_of_checked)
    words << ", " << report.elements << " of " << report.elements_of_checked << " elements ("
          << percent(report.elements, report.elements_of_checked) << ')';
  if (report.skipped > 0) words << ", " << report.skipped << " skipped because they are too large to interpret";
  if (report.differences.empty()) words << ": all agree";
  for (std::size_t i = 0; i < report.differences.size(); ++i)
    words << (i == 0 ? "\nfirst that differs: " : "\nalso: ") << to_string(report.differences[i]);
  say(std::move(words).str());
  return report.differences.empty() ? kGood : kBad;
}

}  // namespace hloom::cli
