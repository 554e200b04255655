#include "compiler/show.h"

#include "base/try.h"
#include "cli/commands.h"
#include "cli/demands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "kernels/print.h"

namespace hloom::cli {
namespace {

compiler::Format format_of(const Options& options) {
  if (options.format == "json") return compiler::Format::Json;
  if (options.format == "dot") return compiler::Format::Dot;
  return options.format == "html" ? compiler::Format::Html : compiler::Format::Text;
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
  return compiler::show(std::move(module), stage, format_of(options), compile_options(options));
}

}  // namespace

Expected<int> show(const Options& options) {
  const Source source = TRY(read_source(options));
  const std::string text = TRY(text_of(options, source));
  TRY(write_output(text));
  return kGood;
}

}  // namespace hloom::cli
