// PROGRAM, read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/corpus_folder.h"
#include "cli/options.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::cli {

/// What PROGRAM is, as its content tells.
enum class Form : std::uint8_t {
  Module,  ///< HLO, or what nothing else is
  Kernel,  ///< one or several kernels
  Llvm,    ///< LLVM's IR as text
};

struct Source {
  std::string path;  ///< of the text; what messages call it
  std::string text;
  Form form = Form::Module;
  std::optional<arrays::CorpusFolder> folder;   ///< where PROGRAM is one
  bool bench_scale = false;                     ///< the text is the folder's bench.hlo
};

/// Reads what PROGRAM names, and tells by its content what it is.
/// Errors: NotFound, PermissionDenied, Unavailable, those of read_corpus_folder(), naming the file.
Expected<Source> read_source(const Options&, bool bench_scale_by_default = false);

/// The source as a module, for as many devices as the options say, else its folder, else its header.
/// Errors: InvalidArgument if it is a kernel or LLVM IR; those of compiler::read_program().
Expected<std::unique_ptr<hlo::Module>> read_module(const Source&, const Options&);

/// The source's kernels. Errors: InvalidArgument, with the file's name, line and column.
Expected<std::vector<kernels::Kernel>> parse_kernels(const Source&);

/// Kernels begin with the word `kernel`, LLVM IR with a comment behind `;` or one of its words that no HLO has there.
Form form_of(std::string_view text);

}  // namespace hloom::cli
