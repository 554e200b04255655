#include "jit/compile.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <unordered_map>
#include <utility>

#include "base/try.h"
#include "emit/module.h"
#include "emit/symbol_name.h"
#include "jit/compile_object.h"
#include "jit/disk_cache.h"
#include "jit/memory_cache.h"
#include "jit/object_key.h"
#include "kernels/print.h"

namespace hloom::jit {
namespace {

using kernels::Kernel;

// The one name under which code is made of kernels that other programs may have under others.
constexpr std::string_view kAnyName = "kernel";

/// Kernels that differ in name only.
struct Distinct {
  const Kernel* kernel;            ///< the first of them
  std::vector<std::string> names;  ///< symbols of all
  ObjectKey key;
  std::shared_ptr<const Object> object = nullptr;
};

// For a debugger each has its own code.
std::vector<Distinct> distinct_kernels(std::span<const Kernel> kernels, const CompileOptions& options,
                                       const base::Target& target) {
  std::vector<Distinct> result;
  std::unordered_map<std::string, std::size_t> places;
  for (const Kernel& kernel : kernels) {
    const auto [place, is_new] = places.emplace(kernels::print(kernel, !options.debugger), result.size());
    if (is_new) result.push_back({&kernel, {}, key_of(place->first, target, options.level)});
    result[place->second].names.push_back(emit::symbol_name(kernel.name));
  }
  return result;
}

// Under its own name where debuggers read the objects, and where messages do.
BuildModule build(const Kernel& kernel, const base::Target& target, bool anonymous) {
  return [&kernel, &target, anonymous](llvm::LLVMContext& context) -> Expected<std::unique_ptr<llvm::Module>> {
    const Kernel* named = &kernel;
    if (!anonymous) return emit::emit_module(context, std::span(&named, 1), target);
    Kernel copy = kernel;
    copy.name = kAnyName;
    const Kernel* nameless = &copy;
    auto module = emit::emit_module(context, std::span(&nameless, 1), target);
    return module ? std::move(module) : emit::emit_module(context, std::span(&named, 1), target);
  };
}

Expected<> compile_missing(std::vector<Distinct>& kernels, const CompileOptions& options, const base::Target& target) {
  const bool shared = !options.debugger;
  const std::int64_t hits_before = options.cache == nullptr ? 0 : options.cache->statistics().hits;
  std::vector<Distinct*> missing;
  std::vector<BuildModule> modules;
  for (Distinct& d : kernels) {
    if (shared) d.object = MemoryCache::process().find(d.key);
    if (d.object != nullptr) continue;
    missing.push_back(&d);
    modules.push_back(build(*d.kernel, target, shared));
  }
  std::vector<Object> objects =
      TRY(compile_objects(modules, options.threads, target, options.level, shared ? options.cache : nullptr));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    missing[i]->object = std::make_shared<const Object>(std::move(objects[i]));
    if (shared) MemoryCache::process().insert(missing[i]->key, missing[i]->object);
  }
  if (options.report != nullptr) {
    options.report->kernels = static_cast<std::int64_t>(kernels.size());
    options.report->from_memory = static_cast<std::int64_t>(kernels.size() - missing.size());
    if (shared && options.cache != nullptr) options.report->from_disk = options.cache->statistics().hits - hits_before;
  }
  if (options.cache != nullptr && options.cache->statistics().stored > 0) options.cache->trim();
  return {};
}

}  // namespace

Expected<std::vector<Part>> compile_to_parts(std::span<const Kernel> kernels, const CompileOptions& options) {
  const base::Target target = TRY(target_or_host(options.cpu));
  std::vector<Distinct> distinct = distinct_kernels(kernels, options, target);
  TRY(compile_missing(distinct, options, target));
  std::vector<Part> parts;
  for (Distinct& d : distinct)
    parts.push_back({std::move(d.object), options.debugger ? std::vector<std::string>() : std::move(d.names)});
  return parts;
}

Expected<std::shared_ptr<Code>> compile(std::span<const Kernel> kernels, const CompileOptions& options) {
  if (!options.cpu.empty()) {
    const base::Target target = TRY(target_named(options.cpu));
    TRY(check_runs_here(target));
  }
  const std::vector<Part> parts = TRY(compile_to_parts(kernels, options));
  Code code = TRY(Code::link_parts(parts, options.externals, {.debugger = options.debugger, .perf = options.perf}));
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
