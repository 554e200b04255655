#include "compiler/show.h"

#include <algorithm>
#include <cctype>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/show_memory.h"
#include "fusion/fuse.h"
#include "jit/compile.h"
#include "kernels/print.h"
#include "kernels/verify.h"
#include "passes/pipeline.h"
#include "text/print.h"

namespace hloom::compiler {
namespace {

constexpr Stage kStages[] = {
    {"hlo", "the module after all passes", false},
    {"fusions", "the module after fusion: what is one kernel, and why the rest is not", false},
    {"buffers", "where each value lies, and when", false},
    {"memory", "bytes by kind, and what is updated in place or copied", false},
    {"kernels", "the loop nests", true},
    {"program", "the steps that run", false},
    {"llvm", "LLVM IR of each kernel", true},
    {"asm", "assembly of each kernel", true},
};

Expected<std::string> show_code(std::span<const kernels::Kernel> kernels, std::string_view stage) {
  if (stage == "llvm") return jit::show_llvm(kernels);
  if (stage == "asm") return jit::show_asm(kernels);
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

Expected<std::string> show(std::unique_ptr<hlo::Module> module, std::string_view stage, const Options& options) {
  if (stage == "hlo" || stage == "fusions") {
    TRY(passes::run_standard(*module));
    if (stage == "fusions") TRY(fusion::fuse(*module));
    return text::print(*module);
  }
  Options without_code = options;
  without_code.generate_code = false;
  const Compiled compiled = TRY(compile(std::move(module), without_code));
  if (stage == "buffers") return buffers_text(compiled.assignment);
  if (stage == "memory") return memory_text(compiled.assignment);
  if (stage == "program") return runtime::to_string(compiled.program);
  return show_code(compiled.kernels, stage);
}

Expected<std::string> show_kernels(std::span<const kernels::Kernel> kernels, std::string_view stage) {
  const auto found = std::ranges::find(kStages, stage, &Stage::name);
  if (found == std::end(kStages) || !found->of_kernels)
    return fail(Code::InvalidArgument, "a kernel has no stage ", stage, "; it has kernels, llvm and asm");
  for (const kernels::Kernel& kernel : kernels) TRY(kernels::verify(kernel));
  return show_code(kernels, stage);
}

Expected<> dump_compiled(const Compiled& compiled, int first_number,
                         const std::function<void(const std::string& name, const std::string& text)>& dump) {
  int number = first_number;
  dump(numbered(number++, "buffers.txt"), buffers_text(compiled.assignment));
  dump(numbered(number++, "memory.txt"), memory_text(compiled.assignment));
  dump(numbered(number++, "program.txt"), runtime::to_string(compiled.program));
  for (const kernels::Kernel& kernel : compiled.kernels) {
    const std::string name = numbered(number, file_name(kernel.name));
    const std::span<const kernels::Kernel> one(&kernel, 1);
    dump(name + ".kernel", kernels::print(kernel));
    if (!kernel.callees.empty()) continue;  // its code is one module with that of what it calls
    dump(name + ".ll", TRY(jit::show_llvm(one)));
    dump(name + ".s", TRY(jit::show_asm(one)));
  }
  return {};
}

}  // namespace hloom::compiler
