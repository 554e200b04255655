#include "base/try.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/source.h"
#include "passes/all.h"
#include "passes/pipeline.h"
#include "passes/run.h"
#include "text/print.h"

namespace hloom::cli {
namespace {

std::string list() {
  std::string text = "standard: all passes that compiling runs, in turn until none finds anything\n";
  for (const passes::Pass& pass : passes::all()) text.append(pass.name).append(": ").append(pass.help).append("\n");
  return text;
}

}  // namespace

Expected<int> opt(const Options& options) {
  if (options.list) {
    TRY(write_output(list()));
    return kGood;
  }
  const Source source = TRY(read_source(options));
  const auto module = TRY(read_module(source, options));
  passes::RunOptions run;
  run.verify = true;
  for (const std::string& name : options.passes) {
    if (name == "standard")
      TRY(passes::run_standard(*module, run));
    else
      TRY(passes::run(*passes::pass_named(name), *module, run));
  }
  TRY(write_output(text::print(*module)));
  return kGood;
}

}  // namespace hloom::cli
