// What each stage of the compiler made, as text.
//
//   std::string text = TRY(compiler::show(std::move(module), *compiler::stage_named("fusions")));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compiler/compile.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::compiler {

struct Stage {
  std::string_view name;
  std::string_view help;
  bool of_kernels = false;  ///< can be shown of kernels alone
  bool of_llvm = false;     ///< can be shown of LLVM IR alone
  bool has_json = false;
  bool has_html = false;
  bool has_dot = false;
};

enum class Format : std::uint8_t { Text, Json, Html, Dot };

/// What can be shown, in the order in which it is made.
std::span<const Stage> stages();

/// The stage of that name, or null.
const Stage* stage_named(std::string_view name);

/// Whether a stage can be shown so.
bool has_format(const Stage&, Format);

/// A stage in words, as JSON, as a page or as a graph. Needs: a verified module; a format that the stage has. Errors: those of
/// compile().
Expected<std::string> show(std::unique_ptr<hlo::Module>, const Stage&, Format = Format::Text, const Options& = {});

/// The same of kernels. Errors: InvalidArgument if the stage comes before kernels, or a kernel does not verify; those
/// of the code generator.
Expected<std::string> show_kernels(std::span<const kernels::Kernel>, const Stage&, const std::string& cpu = {});

/// The same of LLVM's IR as text, `file_name` in messages. Errors: InvalidArgument if the stage comes before it; those
/// of jit::asm_of_text(). One call at a time in a process.
Expected<std::string> show_llvm(std::string_view text, std::string_view file_name, const Stage&,
                                const std::string& cpu = {});

/// Gives `dump` what compile() left, with the same options: buffers, memory, the steps, and each kernel with its LLVM IR and assembly, under
/// names that sort behind `first_number` - 1.
/// Errors: those of the code generator. Cost: that of generating code twice more.
Expected<> dump_compiled(const Compiled&, const Options&, int first_number,
                         const std::function<void(const std::string& name, const std::string& text)>& dump);

}  // namespace hloom::compiler
