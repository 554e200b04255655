#include "emit/module.h"

#include <llvm/IR/GlobalAlias.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"
#include "emit/symbol_name.h"

namespace hloom::emit {

Expected<std::unique_ptr<llvm::Module>> emit_module(llvm::LLVMContext& context,
                                                    std::span<const kernels::Kernel* const> kernels,
                                                    const base::Target& target) {
  auto module = std::make_unique<llvm::Module>(kernels.empty() ? "empty" : kernels.front()->name, context);
  module->setTargetTriple(llvm::Triple(target.triple));
  for (const kernels::Kernel* kernel : kernels) {
    Function f(*kernel, target, context);
    TRY(emit_function(f, *module));
  }
  return module;
}

void add_alias(llvm::Module& module, std::string_view name, std::string_view of) {
  llvm::Function* function = module.getFunction(symbol_name(of));
  HLOOM_CHECK(function != nullptr && !function->isDeclaration());
  llvm::GlobalAlias::create(symbol_name(name), function);
}

std::string print_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

}  // namespace hloom::emit
