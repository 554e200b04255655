#include "jit/llvm_text.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "base/fail.h"
#include "base/try.h"
#include "emit/module.h"
#include "jit/compile_object.h"
#include "jit/target.h"

namespace hloom::jit {
namespace {

constexpr int kMaxDepth = 500;            // of brackets: the parser recurses
constexpr unsigned kStackBytes = 64 << 20;  // so do the verifier and the code generator

// Brackets outside of strings and comments.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == ';') i = text.find(c == ';' ? '\n' : '"', i + 1);
    if (i == std::string_view::npos) return false;
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
    if (depth > kMaxDepth) return true;
  }
  return false;
}

Error told(const llvm::SMDiagnostic& d, std::string_view file_name) {
  const std::string line = d.getLineContents().str();
  const int column = d.getColumnNo() + 1;
  const std::string caret(static_cast<std::size_t>(std::max(column - 1, 0)), ' ');
  return fail(Code::InvalidArgument, file_name, ":", d.getLineNo(), ":", column, ": ", d.getMessage().str(), "\n", line,
              "\n", caret, "^");
}

Expected<std::unique_ptr<llvm::Module>> read(std::string_view text, std::string_view file_name,
                                             llvm::LLVMContext& context, const base::Target& target) {
  if (is_too_deep(text)) return fail(Code::InvalidArgument, file_name, ": brackets nest deeper than ", kMaxDepth);
  llvm::SMDiagnostic diagnostic;
  const std::string copy(text);  // the parser wants a 0 behind the last byte
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssembly(llvm::MemoryBufferRef(copy, std::string(file_name)), diagnostic, context);
  if (module == nullptr) return told(diagnostic, file_name);
  module->setModuleIdentifier(module->getSourceFileName());  // as it was printed
  std::string words;
  llvm::raw_string_ostream out(words);
  if (llvm::verifyModule(*module, &out)) return fail(Code::InvalidArgument, file_name, ": ", words);
  const llvm::Triple& triple = module->getTargetTriple();
  if (triple.getArch() != llvm::Triple::UnknownArch && triple.getArch() != llvm::Triple(target.triple).getArch())
    return fail(Code::InvalidArgument, file_name, ": is for ", triple.str(), "; code is made for ", target.triple);
  return module;
}

void leave(void* words, const char* reason, bool) {
  *static_cast<std::string*>(words) = reason;
  if (auto* context = llvm::CrashRecoveryContext::GetCurrent()) context->HandleExit(1);
}

// LLVM ends the process over IR that it has no code for; here it only ends `work`.
Expected<std::string> survive(std::string_view file_name, const std::function<Expected<std::string>()>& work) {
  std::string words;
  std::optional<Expected<std::string>> result;
  llvm::CrashRecoveryContext::Enable();
  bool done = false;
  {
    const llvm::ScopedFatalErrorHandler handler(leave, &words);
    llvm::CrashRecoveryContext context;
    done = context.RunSafelyOnThread([&] { result.emplace(work()); }, kStackBytes);
  }
  llvm::CrashRecoveryContext::Disable();
  if (done) return *std::move(result);
  return fail(Code::Internal, file_name, ": LLVM fails over it", words.empty() ? "" : ": ", words);
}

}  // namespace

Expected<std::string> llvm_of_text(std::string_view text, std::string_view file_name, const base::Target& target) {
  return survive(file_name, [&]() -> Expected<std::string> {
    llvm::LLVMContext context;
    const auto module = TRY(read(text, file_name, context, target));
    return emit::print_module(*module);
  });
}

Expected<std::string> asm_of_text(std::string_view text, std::string_view file_name, const base::Target& target) {
  const auto machine = TRY(make_target_machine(target));
  return survive(file_name, [&]() -> Expected<std::string> {
    llvm::LLVMContext context;
    const auto module = TRY(read(text, file_name, context, target));
    return emit_assembly(*module, *machine);
  });
}

}  // namespace hloom::jit
