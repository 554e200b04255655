#include "jit/compile_object.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/check.h"
#include "base/fail.h"
#include "base/thread.h"
#include "base/try.h"
#include "jit/disk_cache.h"
#include "jit/object_key.h"

namespace hloom::jit {
namespace {

// A line: where the loops of a kernel lie in lines does not depend on what it is linked with, nor does its speed.
const llvm::Align kFunctionAlignment(64);

// Keeps the errors that LLVM would otherwise print before it exits.
class Diagnostics final : public llvm::DiagnosticHandler {
 public:
  explicit Diagnostics(std::string* errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream out(*errors_);
    if (!errors_->empty()) out << "; ";
    llvm::DiagnosticPrinterRawOStream printer(out);
    info.print(printer);
    return true;
  }

 private:
  std::string* errors_;
};

bool verifies(const llvm::Module& module) { return !llvm::verifyModule(module, &llvm::errs()); }

// Kernels never unwind, and an .eh_frame would have to be registered with the unwinder.
void prepare(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function& function : module) {
    function.setDoesNotThrow();
    function.removeFnAttr(llvm::Attribute::UWTable);
  }
}

Expected<> generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                    llvm::CodeGenFileType type) {
  prepare(module, machine);
  HLOOM_DCHECK(verifies(module));
  llvm::LLVMContext& context = module.getContext();
  std::string errors;
  std::unique_ptr<llvm::DiagnosticHandler> before = context.getDiagnosticHandler();
  context.setDiagnosticHandler(std::make_unique<Diagnostics>(&errors));
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) f.setAlignment(kFunctionAlignment);
  llvm::legacy::PassManager passes;
  const bool unable = machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true);
  if (!unable) passes.run(module);
  context.setDiagnosticHandler(std::move(before));
  if (unable) return fail(Code::Internal, module.getModuleIdentifier(), ": the target writes no such file");
  if (!errors.empty()) return fail(Code::Internal, module.getModuleIdentifier(), ": ", errors);
  return {};
}

// One thread's share: takes the next module until none is left or one failed.
class Batch {
 public:
  Batch(const std::vector<BuildModule>& modules, const base::Target& target, Level level, DiskCache* cache)
      : modules_(modules), target_(target), level_(level), cache_(cache), results_(modules.size()) {}

  void work() {
    Expected<std::unique_ptr<llvm::TargetMachine>> machine = make_target_machine(target_, level_);
    for (std::size_t i; !failed_ && (i = next_++) < modules_.size();) {
      results_[i].emplace(machine ? compile(i, **machine) : Expected<Object>(machine.error()));
      if (!*results_[i]) failed_ = true;
    }
  }

  Expected<std::vector<Object>> take() {
    std::vector<Object> objects;
    for (std::optional<Expected<Object>>& result : results_) {
      if (!result) continue;  // left out after a failure, which some other result has
      Object object = TRY(std::move(*result));
      objects.push_back(std::move(object));
    }
    HLOOM_CHECK(objects.size() == modules_.size());
    return objects;
  }

 private:
  Expected<Object> compile(std::size_t i, llvm::TargetMachine& machine) const {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = TRY(modules_[i](context));
    HLOOM_CHECK(module != nullptr);
    if (cache_ == nullptr) return compile_object(*module, machine);
    const ObjectKey key = key_of(*module, target_, level_);
    if (std::optional<Object> found = cache_->load(key)) return *std::move(found);
    Object object = TRY(compile_object(*module, machine));
    cache_->store(key, object, target_);
    return object;
  }

  const std::vector<BuildModule>& modules_;
  const base::Target& target_;
  const Level level_;
  DiskCache* const cache_;
  std::vector<std::optional<Expected<Object>>> results_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace

Expected<Object> compile_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  TRY(generate(module, machine, out, llvm::CodeGenFileType::ObjectFile));
  return Object{module.getModuleIdentifier(), {bytes.begin(), bytes.end()}};
}

Expected<std::string> emit_assembly(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream out(text);
  TRY(generate(module, machine, out, llvm::CodeGenFileType::AssemblyFile));
  return std::string(text.begin(), text.end());
}

Expected<std::vector<Object>> compile_objects(const std::vector<BuildModule>& modules, int num_threads,
                                              const base::Target& target, Level level,
                                              DiskCache* cache) {
  Batch batch(modules, target, level, cache);
  const std::size_t count = std::min(static_cast<std::size_t>(std::max(num_threads, 1)), modules.size());
  std::vector<base::Thread> threads;
  for (std::size_t i = 1; i < count; ++i) {
    std::optional<base::Thread> thread = base::Thread::start("hloom-compile", [&] { batch.work(); });
    if (!thread) break;
    threads.push_back(*std::move(thread));
  }
  batch.work();
  for (base::Thread& thread : threads) thread.join();
  return batch.take();
}

}  // namespace hloom::jit
