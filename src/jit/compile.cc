#include "jit/compile.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/try.h"
#include "emit/module.h"
#include "emit/symbol_name.h"
#include "jit/compile_object.h"
#include "kernels/print.h"

namespace hloom::jit {
namespace {

using kernels::Kernel;

// Kernels per module: beyond this hardly anything is gained, and threads have less to share.
constexpr std::size_t kBatch = 10;

// A kernel, and the others that differ from it in name only.
struct Distinct {
  const Kernel* kernel;
  std::vector<std::string_view> others;
};

std::vector<Distinct> distinct_kernels(std::span<const Kernel> kernels) {
  std::vector<Distinct> result;
  std::unordered_map<std::string, std::size_t> places;
  for (const Kernel& kernel : kernels) {
    const auto [place, is_new] = places.emplace(kernels::print(kernel, /*anonymous=*/true), result.size());
    if (is_new)
      result.push_back({&kernel, {}});
    else
      result[place->second].others.push_back(kernel.name);
  }
  return result;
}

BuildModule build_batch(std::span<const Distinct> batch, const base::Target& target) {
  return [batch, &target](llvm::LLVMContext& context) -> Expected<std::unique_ptr<llvm::Module>> {
    std::vector<const Kernel*> kernels;
    for (const Distinct& d : batch) kernels.push_back(d.kernel);
    auto module = TRY(emit::emit_module(context, kernels, target));
    for (const Distinct& d : batch)
      for (const std::string_view other : d.others) emit::add_alias(*module, other, d.kernel->name);
    return module;
  };
}

}  // namespace

Expected<std::vector<Object>> compile_to_objects(std::span<const Kernel> kernels, const CompileOptions& options) {
  const base::Target target = TRY(target_or_host(options.cpu));
  const std::vector<Distinct> distinct = distinct_kernels(kernels);
  std::vector<BuildModule> modules;
  for (std::size_t i = 0; i < distinct.size(); i += kBatch)
    modules.push_back(build_batch(std::span(distinct).subspan(i, std::min(kBatch, distinct.size() - i)), target));
  return compile_objects(modules, options.threads, target, options.level);
}

Expected<std::shared_ptr<Code>> compile(std::span<const Kernel> kernels, const CompileOptions& options) {
  if (!options.cpu.empty()) {
    const base::Target target = TRY(target_named(options.cpu));
    TRY(check_runs_here(target));
  }
  const std::vector<Object> objects = TRY(compile_to_objects(kernels, options));
  Code code = TRY(Code::link(objects, options.externals, {.debugger = options.debugger, .perf = options.perf}));
  return std::make_shared<Code>(std::move(code));
}

Expected<base::KernelFunction> kernel_function(const Code& code, std::string_view kernel) {
  void* address = TRY(code.lookup(emit::symbol_name(kernel)));
  return reinterpret_cast<base::KernelFunction>(address);
}

Expected<std::string> show_llvm(std::span<const Kernel> kernels, const CompileOptions& options) {
  const base::Target target = TRY(target_or_host(options.cpu));
  std::string text;
  for (const Kernel& kernel : kernels) {
    llvm::LLVMContext context;
    const Kernel* one[] = {&kernel};
    const auto module = TRY(emit::emit_module(context, one, target));
    text += emit::print_module(*module);
  }
  return text;
}

Expected<std::string> show_asm(std::span<const Kernel> kernels, const CompileOptions& options) {
  const base::Target target = TRY(target_or_host(options.cpu));
  const auto machine = TRY(make_target_machine(target, options.level));
  std::string text;
  for (const Kernel& kernel : kernels) {
    llvm::LLVMContext context;
    const Kernel* one[] = {&kernel};
    const auto module = TRY(emit::emit_module(context, one, target));
    text += TRY(emit_assembly(*module, *machine));
  }
  return text;
}

}  // namespace hloom::jit
