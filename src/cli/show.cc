#include "compiler/show.h"

#include "arrays/files.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/demands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "compiler/memory_budget.h"
#include "kernels/print.h"

namespace hloom::cli {
namespace {

compiler::Format format_of(const Options& options) {
  if (options.format == "json") return compiler::Format::Json;
  if (options.format == "dot") return compiler::Format::Dot;
  return options.format == "html" ? compiler::Format::Html : compiler::Format::Text;
}

// Nothing more to say where a budget is written.
Expected<std::string> memory_text(const Options& options, std::unique_ptr<hlo::Module> module) {
  compiler::Options without_code = TRY(compile_options(options));
  without_code.generate_code = false;
  const compiler::Compiled compiled = TRY(compiler::compile(std::move(module), without_code));
  if (!options.write_budget.empty())
    TRY(write_file(options.write_budget, compiler::budget_of(compiled.assignment)));
  if (options.against.empty()) return std::string();
  const std::vector<std::byte> bytes = TRY(arrays::read_file(options.against));
  const std::string_view report(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return compiler::memory_changes(report, options.against, compiled);
}

Expected<std::string> text_of(const Options& options, const Source& source) {
  const Progress progress("compiling " + source.path);
  const compiler::Stage& stage = *compiler::stage_named(options.stage);
  if (source.form == Form::Llvm) return compiler::show_llvm(source.text, source.path, stage, options.cpu);
  if (source.form == Form::Kernel) {
    const std::vector<kernels::Kernel> kernels = TRY(parse_kernels(source));
    return compiler::show_kernels(kernels, stage, options.cpu);
  }
  auto module = TRY(read_module(source, options));
  if (!options.write_budget.empty() || !options.against.empty()) return memory_text(options, std::move(module));
  return compiler::show(std::move(module), stage, format_of(options), TRY(compile_options(options)));
}

}  // namespace

Expected<int> show(const Options& options) {
  const Source source = TRY(read_source(options));
  const std::string text = TRY(text_of(options, source));
  TRY(write_output(text));
  return kGood;
}

}  // namespace hloom::cli
