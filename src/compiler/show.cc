#include "compiler/show.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "compiler/module_graph.h"
#include "compiler/pack_constants.h"
#include "compiler/show_memory.h"
#include "fusion/fuse.h"
#include "jit/compile.h"
#include "jit/llvm_text.h"
#include "jit/target.h"
#include "kernels/print.h"
#include "kernels/verify.h"
#include "passes/pipeline.h"
#include "text/print.h"

namespace hloom::compiler {
namespace {

constexpr Stage kStages[] = {
    {.name = "hlo", .help = "the module after all passes", .has_dot = true},
    {.name = "fusions",
     .help = "the module after fusion: what is one kernel, and why the rest is not",
     .has_dot = true},
    {.name = "buffers", .help = "where each value lies, and when", .has_json = true},
    {.name = "memory",
     .help = "bytes by kind, who owns the peak, and what is updated in place or copied",
     .has_json = true,
     .has_html = true},
    {.name = "kernels", .help = "the loop nests", .of_kernels = true},
    {.name = "program", .help = "the steps that run"},
    {.name = "llvm", .help = "LLVM IR of each kernel", .of_kernels = true, .of_llvm = true},
    {.name = "asm", .help = "assembly of each kernel", .of_kernels = true, .of_llvm = true},
};

Expected<std::string> show_code(std::span<const kernels::Kernel> kernels, std::string_view stage,
                                const std::string& cpu) {
  if (stage == "llvm") return jit::show_llvm(kernels, {.cpu = cpu});
  if (stage == "asm") return jit::show_asm(kernels, {.cpu = cpu});
  std::string text;
  for (const kernels::Kernel& kernel : kernels) text.append(text.empty() ? "" : "\n").append(kernels::print(kernel));
  return text;
}

// A name that every file system takes.
std::string file_name(std::string name) {
  const auto odd = [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; };
  std::replace_if(name.begin(), name.end(), odd, '_');
  return name.substr(0, 200);
}

std::string numbered(int number, std::string_view name) {
  return std::string(number < 10 ? "0" : "").append(std::to_string(number)).append("-").append(name);
}

}  // namespace

std::span<const Stage> stages() { return kStages; }

const Stage* stage_named(std::string_view name) {
  const auto found = std::ranges::find(kStages, name, &Stage::name);
  return found == std::end(kStages) ? nullptr : found;
}

bool has_format(const Stage& stage, Format format) {
  switch (format) {
    case Format::Text: return true;
    case Format::Json: return stage.has_json;
    case Format::Html: return stage.has_html;
    case Format::Dot: return stage.has_dot;
  }
  return false;
}

Expected<std::string> show(std::unique_ptr<hlo::Module> module, const Stage& stage, Format format,
                           const Options& options) {
  HLOOM_CHECK(has_format(stage, format));
  const bool json = format == Format::Json;
  if (stage.name == "hlo" || stage.name == "fusions") {
    TRY(passes::run_standard(*module));
    if (stage.name == "fusions") {
      TRY(fusion::fuse(*module));
      const base::Target target = TRY(jit::target_or_host(options.cpu));
      TRY(pack_constants(*module, target));
    }
    return format == Format::Dot ? module_graph(*module) : text::print(*module);
  }
  Options without_code = options;
  without_code.generate_code = false;
  const Compiled compiled = TRY(compile(std::move(module), without_code));
  const buffers::Assignment& assignment = compiled.assignment;
  if (stage.name == "buffers") return json ? buffers_json(assignment) : buffers_text(assignment);
  if (format == Format::Html) return memory_html(compiled);
  if (stage.name == "memory") return json ? memory_json(compiled) : memory_text(compiled);
  if (stage.name == "program") return runtime::to_string(compiled.program);
  return show_code(compiled.kernels, stage.name, options.cpu);
}

Expected<std::string> show_kernels(std::span<const kernels::Kernel> kernels, const Stage& stage,
                                   const std::string& cpu) {
  if (!stage.of_kernels)
    return fail(Code::InvalidArgument, "a kernel has no stage ", stage.name, "; it has kernels, llvm and asm");
  for (const kernels::Kernel& kernel : kernels) TRY(kernels::verify(kernel));
  return show_code(kernels, stage.name, cpu);
}

Expected<std::string> show_llvm(std::string_view text, std::string_view file_name, const Stage& stage,
                                const std::string& cpu) {
  if (!stage.of_llvm)
    return fail(Code::InvalidArgument, file_name, ": LLVM IR has no stage ", stage.name, "; it has llvm and asm");
  const base::Target target = TRY(jit::target_or_host(cpu));
  if (stage.name == "llvm") return jit::llvm_of_text(text, file_name, target);
  return jit::asm_of_text(text, file_name, target);
}

Expected<> dump_compiled(const Compiled& compiled, const Options& options, int first_number,
                         const std::function<void(const std::string& name, const std::string& text)>& dump) {
  int number = first_number;
  dump(numbered(number++, "buffers.txt"), buffers_text(compiled.assignment));
  dump(numbered(number++, "memory.txt"), memory_text(compiled));
  dump(numbered(number++, "program.txt"), runtime::to_string(compiled.program));
  for (const kernels::Kernel& kernel : compiled.kernels) {
    const std::string name = numbered(number, file_name(kernel.name));
    const std::span<const kernels::Kernel> one(&kernel, 1);
    dump(name + ".kernel", kernels::print(kernel));
    if (!kernel.callees.empty()) continue;  // its code is one module with that of what it calls
    dump(name + ".ll", TRY(jit::show_llvm(one, {.cpu = options.cpu})));
    dump(name + ".s", TRY(jit::show_asm(one, {.cpu = options.cpu})));
  }
  return {};
}

}  // namespace hloom::compiler
