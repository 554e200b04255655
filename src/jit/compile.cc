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
#include "jit/object_queue.h"
#include "kernels/print.h"

namespace hloom::jit {
namespace {

using kernels::Kernel;

// The one name under which code is made of kernels that other programs may have under others.
constexpr std::string_view kAnyName = "kernel";

/// Kernels that differ in name only.
struct Distinct {
  std::vector<std::string> names;  ///< symbols of all
  ObjectKey key;
  std::shared_ptr<const Object> object;  ///< if it was there already
  std::size_t number = 0;                ///< else in the queue
};

// Under its own name where debuggers read the objects, and where messages do.
BuildModule build(std::shared_ptr<const Kernel> kernel, const base::Target& target, bool anonymous) {
  return [kernel = std::move(kernel), &target,
          anonymous](llvm::LLVMContext& context) -> Expected<std::unique_ptr<llvm::Module>> {
    const Kernel* named = kernel.get();
    if (!anonymous) return emit::emit_module(context, std::span(&named, 1), target);
    Kernel copy = *kernel;
    copy.name = kAnyName;
    const Kernel* nameless = &copy;
    auto module = emit::emit_module(context, std::span(&nameless, 1), target);
    return module ? std::move(module) : emit::emit_module(context, std::span(&named, 1), target);
  };
}

}  // namespace

struct KernelCompiler::Impl {
  Impl(CompileOptions given, const base::Target& wanted)
      : options(std::move(given)),
        target(wanted),
        shared(!options.debugger),  // for a debugger each kernel has its own code
        cache(shared ? options.cache : nullptr),
        hits_before(cache == nullptr ? 0 : cache->statistics().hits),
        queue(options.threads, target, options.level, cache) {}

  void add(const Kernel& kernel) {
    const auto [place, is_new] = places.emplace(kernels::print(kernel, shared), distinct.size());
    if (is_new) {
      Distinct d{{}, key_of(place->first, target, options.level), nullptr};
      if (shared) d.object = MemoryCache::process().find(d.key);
      if (d.object == nullptr) d.number = queue.add(build(std::make_shared<const Kernel>(kernel), target, shared));
      distinct.push_back(std::move(d));
    }
    distinct[place->second].names.push_back(emit::symbol_name(kernel.name));
  }

  Expected<std::shared_ptr<const Object>> object_of(Distinct& d) {
    if (d.object != nullptr) {
      ++from_memory;
      return d.object;
    }
    Object object = TRY(queue.take(d.number));
    d.object = std::make_shared<const Object>(std::move(object));
    if (shared) MemoryCache::process().insert(d.key, d.object);
    return d.object;
  }

  Expected<std::shared_ptr<Code>> finish() {
    std::vector<std::vector<std::string>> names;
    for (Distinct& d : distinct) names.push_back(shared ? std::move(d.names) : std::vector<std::string>());
    Code code = TRY(Code::link_parts(names, [this](std::size_t n) { return object_of(distinct[n]); }, options.externals,
                                     {.debugger = options.debugger, .perf = options.perf}));
    report();
    return std::make_shared<Code>(std::move(code));
  }

  void report() const {
    if (options.report != nullptr) {
      options.report->kernels = std::ssize(distinct);
      options.report->from_memory = from_memory;
      if (cache != nullptr) options.report->from_disk = cache->statistics().hits - hits_before;
    }
    if (cache != nullptr && cache->statistics().stored > 0) cache->trim();
  }

  const CompileOptions options;
  const base::Target target;
  const bool shared;
  DiskCache* const cache;
  const std::int64_t hits_before;
  std::int64_t from_memory = 0;
  std::vector<Distinct> distinct;
  std::unordered_map<std::string, std::size_t> places;  ///< in `distinct`, by text
  ObjectQueue queue;  ///< the last: it ends before what it works with
};

KernelCompiler::KernelCompiler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KernelCompiler::~KernelCompiler() = default;

Expected<std::unique_ptr<KernelCompiler>> KernelCompiler::create(CompileOptions options) {
  const base::Target target = TRY(target_or_host(options.cpu));
  if (!options.cpu.empty()) TRY(check_runs_here(target));
  return std::unique_ptr<KernelCompiler>(new KernelCompiler(std::make_unique<Impl>(std::move(options), target)));
}

void KernelCompiler::add(const Kernel& kernel) { impl_->add(kernel); }
Expected<std::shared_ptr<Code>> KernelCompiler::finish() { return impl_->finish(); }

Expected<std::shared_ptr<Code>> compile(std::span<const Kernel> kernels, const CompileOptions& options) {
  const auto compiler = TRY(KernelCompiler::create(options));
  for (const Kernel& kernel : kernels) compiler->add(kernel);
  return compiler->finish();
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
