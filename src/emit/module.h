// Kernels as LLVM IR with explicit SIMD.
//
//   llvm::LLVMContext context;
//   auto module = TRY(emit::emit_module(context, kernels, target));
//   std::cout << emit::print_module(*module);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/target.h"
#include "hloom/error.h"
#include "kernels/kernel.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace hloom::emit {

/// One module with one externally visible function for each kernel: symbol_name(kernel.name), of the signature
/// base::KernelFunction. The IR needs no IR passes: its vectors are `lanes` wide, loops are rotated, memory has alias
/// scopes. No float operation has a fast-math flag. What it refers to: callees, kForkJoin, kReportOutside, and what code generation
/// may call (jit::known_symbols()). Needs: kernels that kernels::verify() accepts, names that differ.
/// Errors: Unimplemented, naming kernel, opcode and type, if there is no body for them.
/// Cost: linear in the kernels' statements; loops by lanes with a rest count twice.
Expected<std::unique_ptr<llvm::Module>> emit_module(llvm::LLVMContext&,
                                                    std::span<const kernels::Kernel* const> kernels,
                                                    const base::Target&);

/// Makes `name` another name of the function of kernel `of`, which the module holds: for kernels that differ only in
/// name.
void add_alias(llvm::Module&, std::string_view name, std::string_view of);

/// The module as LLVM's assembly text.
std::string print_module(const llvm::Module&);

}  // namespace hloom::emit
