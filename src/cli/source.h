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

struct Source {
  std::string path;  ///< of the text; what messages call it
  std::string text;
  bool is_kernel = false;                       ///< one or several kernels instead of a module
  std::optional<arrays::CorpusFolder> folder;   ///< where PROGRAM is one
  bool bench_scale = false;                     ///< the text is the folder's bench.hlo
};

/// Reads what PROGRAM names, and tells by its content what it is.
/// Errors: NotFound, PermissionDenied, Unavailable, those of read_corpus_folder(), naming the file.
Expected<Source> read_source(const Options&, bool bench_scale_by_default = false);

/// The source as a module, for as many devices as the options say, else its folder, else its header. Errors: InvalidArgument if it is a kernel; those of compiler::read_program().
Expected<std::unique_ptr<hlo::Module>> read_module(const Source&, const Options&);

/// The source's kernels. Errors: InvalidArgument, with the file's name, line and column.
Expected<std::vector<kernels::Kernel>> parse_kernels(const Source&);

/// Whether the text holds kernels: its first word is `kernel`.
bool is_kernel_text(std::string_view text);

}  // namespace hloom::cli
