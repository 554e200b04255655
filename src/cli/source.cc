#include "cli/source.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "arrays/files.h"
#include "base/fail.h"
#include "base/try.h"
#include "compiler/read_program.h"
#include "kernels/print.h"

namespace hloom::cli {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

Expected<std::string> read_standard_input() {
  std::string text;
  char part[1 << 16];
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, part, sizeof(part));
    if (got == 0) return text;
    if (got > 0)
      text.append(part, static_cast<std::size_t>(got));
    else if (errno != EINTR)
      return fail(Code::Unavailable, "standard input: ", std::strerror(errno));
  }
}

Expected<std::string> read_text(const std::string& path) {
  const std::vector<std::byte> bytes = TRY(arrays::read_file(path));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Expected<> read_folder(const std::string& path, bool bench_scale, Source& source) {
  if (!arrays::is_corpus_folder(path))
    return fail(Code::InvalidArgument, path, ": is a folder without program.hlo and meta.json");
  source.folder = TRY(arrays::read_corpus_folder(path));
  source.bench_scale = bench_scale;
  source.path = bench_scale ? path + "/bench.hlo" : source.folder->program_path;
  return {};
}

}  // namespace

Form form_of(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    if (!text.empty() && std::string_view(";@!$").find(text[0]) != std::string_view::npos) return Form::Llvm;
    if (!text.starts_with("//")) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  const auto starts = [text](std::string_view word) {
    const std::string_view rest = text.substr(std::min(word.size(), text.size()));
    const std::size_t next = rest.find_first_not_of(kBlank);
    // A computation of that name would go on with its parameters.
    return text.starts_with(word) && next != 0 && next != std::string_view::npos && rest[next] != '(' && rest[next] != '{';
  };
  if (starts("kernel")) return Form::Kernel;
  for (const std::string_view word : {"source_filename", "target", "define", "declare"})
    if (starts(word)) return Form::Llvm;
  return Form::Module;
}

Expected<Source> read_source(const Options& options, bool bench_scale_by_default) {
  Source source;
  source.path = options.program;
  std::error_code none;
  if (options.program == "-") {
    source.path = "<stdin>";
    source.text = TRY(read_standard_input());
  } else {
    if (std::filesystem::is_directory(options.program, none)) {
      const bool by_default = bench_scale_by_default && std::filesystem::exists(options.program + "/bench.hlo", none);
      TRY(read_folder(options.program, options.bench_scale.value_or(by_default), source));
    }
    source.text = TRY(read_text(source.path));
  }
  source.form = form_of(source.text);
  return source;
}

Expected<std::unique_ptr<hlo::Module>> read_module(const Source& source, const Options& options) {
  if (source.form == Form::Llvm)
    return fail(Code::InvalidArgument, source.path, ": is LLVM IR; `hloom show` takes it, for llvm and asm");
  if (source.form == Form::Kernel)
    return fail(Code::InvalidArgument, source.path, ": is a kernel; `hloom check` and `hloom show` take those");
  compiler::ReadOptions read{.file_name = source.path, .module = options.module, .fill_elided = options.fill_elided};
  if (source.folder) read.replicas = source.folder->num_replicas;
  if (source.folder) read.partitions = source.folder->num_partitions;
  if (options.replicas > 0) read.replicas = options.replicas;
  if (options.partitions > 0) read.partitions = options.partitions;
  return compiler::read_program(source.text, read);
}

Expected<std::vector<kernels::Kernel>> parse_kernels(const Source& source) {
  auto kernels = kernels::parse_kernels(source.text);
  if (!kernels) return fail(kernels.error().code(), source.path, ": ", kernels.error().message());
  return kernels;
}

}  // namespace hloom::cli
