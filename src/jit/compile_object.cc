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

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "jit/object_queue.h"

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

// Kernels never unwind, but what they call may walk the stack, as profilers do at any place: an object has tables for
// that where it is linked with them.
bool wants_unwind_tables(const llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  return type == llvm::CodeGenFileType::ObjectFile && machine.getTargetTriple().isOSBinFormatELF();
}

void prepare(llvm::Module& module, const llvm::TargetMachine& machine, bool unwind_tables) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function& function : module) {
    function.setDoesNotThrow();
    function.setUWTableKind(unwind_tables ? llvm::UWTableKind::Async : llvm::UWTableKind::None);
  }
}

Expected<> generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                    llvm::CodeGenFileType type) {
  prepare(module, machine, wants_unwind_tables(machine, type));
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
  ObjectQueue queue(num_threads, target, level, cache);
  for (const BuildModule& module : modules) queue.add(module);
  std::vector<Object> objects;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    Object object = TRY(queue.take(i));
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace hloom::jit
