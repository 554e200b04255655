#include "compiler/check.h"

#include <sstream>

#include "base/fail.h"
#include "base/try.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "compiler/check_kernel.h"

namespace hloom::cli {
namespace {

Expected<int> check_kernels(const Options& options, const Source& source) {
  const std::vector<kernels::Kernel> kernels = TRY(parse_kernels(source));
  const auto differences = TRY(compiler::check_kernels(kernels, options.random_seed));
  for (const compiler::KernelDifference& d : differences) say(source.path + ": " + d.kernel + ": " + d.message);
  if (!differences.empty()) return kBad;
  say(source.path + ": " + std::to_string(kernels.size()) + (kernels.size() == 1 ? " kernel does" : " kernels do") +
      " what they say");
  return kGood;
}

Expected<compiler::CheckReport> check_module(const Options& options, const Source& source) {
  auto module = TRY(read_module(source, options));
  const Devices devices = TRY(devices_of(*module));
  if (devices.count() != 1)
    return fail(Code::Unimplemented, source.path, ": runs on ", devices.count(),
                " devices; only programs for one are checked");
  const auto arguments = TRY(read_arguments(options, source, *module, devices));
  compiler::CheckOptions check;
  check.threads = options.threads;
  const Progress progress("checking " + source.path);
  return compiler::check(std::move(module), arguments[0], check);
}

}  // namespace

Expected<int> check(const Options& options) {
  const Source source = TRY(read_source(options));
  if (source.is_kernel) return check_kernels(options, source);
  const compiler::CheckReport report = TRY(check_module(options, source));
  std::ostringstream words;
  words << source.path << ": " << report.instructions << " instructions, " << report.checks << " checks";
  if (report.skipped > 0) words << ", " << report.skipped << " skipped because they are too large to interpret";
  if (report.differences.empty()) words << ": all agree";
  for (std::size_t i = 0; i < report.differences.size(); ++i)
    words << (i == 0 ? "\nfirst that differs: " : "\nalso: ") << report.differences[i].instruction << ": "
          << report.differences[i].message;
  say(std::move(words).str());
  return report.differences.empty() ? kGood : kBad;
}

}  // namespace hloom::cli
