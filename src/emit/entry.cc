// The function around a kernel: its signature, the pointers, and what may be assumed of the memory behind them.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"
#include "emit/symbol_name.h"

namespace hloom::emit {
namespace {

constexpr int kMaxInlined = 16;  // functions of a kernel whose bodies stand where they are used

using llvm::BasicBlock;
using llvm::MDNode;

llvm::Function* declare(Function& f, llvm::Module& module) {
  llvm::IRBuilder<>& b = f.b;
  llvm::Type* types[] = {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty(), b.getPtrTy()};
  // A caller emitted before may have declared it.
  auto* function = llvm::cast<llvm::Function>(
      module.getOrInsertFunction(symbol_name(f.kernel.name), llvm::FunctionType::get(b.getVoidTy(), types, false))
          .getCallee());
  HLOOM_CHECK(function->isDeclaration());  // names differ
  static constexpr const char* kNames[] = {"buffers", "begin", "end", "scratch"};
  for (unsigned i = 0; i < 4; ++i) function->getArg(i)->setName(kNames[i]);
  function->setDoesNotThrow();
  function->addFnAttr("target-cpu", f.target.cpu);
  if (!f.target.features.empty()) function->addFnAttr("target-features", f.target.features);
  // Some processors' tuning splits 512-bit vectors into halves, which costs up to 1.9 times.
  function->addFnAttr("prefer-vector-width", std::to_string(8 * f.target.vector_bytes));
  return function;
}

llvm::Value* load_pointer(Function& f, std::size_t i) {
  llvm::IRBuilder<>& b = f.b;
  const kernels::Argument& argument = f.kernel.arguments[i];
  llvm::Value* slot = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), f.function->getArg(0), i);
  llvm::LoadInst* pointer = b.CreateLoad(b.getPtrTy(), slot, argument.name);
  const auto number = [&](std::int64_t x) {
    return MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt64(static_cast<std::uint64_t>(x))));
  };
  const std::int64_t size_bytes = argument_bytes(argument);
  pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
  if (std::has_single_bit(static_cast<std::uint64_t>(argument.alignment)))
    pointer->setMetadata(llvm::LLVMContext::MD_align, number(argument.alignment));
  if (size_bytes > 0) pointer->setMetadata(llvm::LLVMContext::MD_dereferenceable, number(size_bytes));
  return pointer;
}

// Whatever is written and overlaps nothing has a scope of its own, and every other access is known to be outside.
// An access to what may overlap says nothing.
void set_scopes(Function& f, std::size_t num_arguments) {
  llvm::MDBuilder md(f.b.getContext());
  MDNode* domain = md.createAnonymousAliasScopeDomain(f.kernel.name);
  std::vector<MDNode*> scopes(f.memories.size());
  const auto own = [&](std::size_t i) {
    return i >= num_arguments || (f.kernel.arguments[i].written && !f.kernel.arguments[i].may_overlap);
  };
  for (std::size_t i = 0; i < scopes.size(); ++i)
    if (own(i)) scopes[i] = md.createAnonymousAliasScope(domain);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    if (i < num_arguments && f.kernel.arguments[i].may_overlap) continue;
    llvm::SmallVector<llvm::Metadata*, 8> others;
    for (std::size_t j = 0; j < scopes.size(); ++j)
      if (j != i && scopes[j]) others.push_back(scopes[j]);
    if (scopes[i]) f.memories[i].scope = MDNode::get(f.b.getContext(), {scopes[i]});
    if (!others.empty()) f.memories[i].not_scopes = MDNode::get(f.b.getContext(), others);
  }
}

void load_pointers(Function& f) {
  for (std::size_t i = 0; i < f.kernel.arguments.size(); ++i) {
    const kernels::Argument& a = f.kernel.arguments[i];
    f.memories.push_back({load_pointer(f, i), argument_bytes(a), !a.written && !a.may_overlap, nullptr, nullptr});
  }
  if (f.kernel.scratch_bytes > 0) {
    f.memories.push_back({f.function->getArg(3), f.kernel.scratch_bytes, false, nullptr, nullptr});
    f.function->addParamAttr(3, llvm::Attribute::NoAlias);
    f.function->addParamAttr(3, llvm::Attribute::getWithAlignment(f.b.getContext(), llvm::Align(64)));
  }
  set_scopes(f, f.kernel.arguments.size());
  if (!f.kernel.checks_bounds) return;
  llvm::Value* slot = f.b.CreateConstInBoundsGEP1_64(f.b.getPtrTy(), f.function->getArg(0), f.kernel.arguments.size());
  f.status = f.b.CreateLoad(f.b.getPtrTy(), slot, "status");
}

void fence_streams(Function& f) {
  if (llvm::Triple(f.target.triple).isX86())
    f.b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {});
  else
    f.b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
}

}  // namespace

Expected<> emit_function(Function& f, llvm::Module& module) {
  f.function = declare(f, module);
  f.shares_functions = count_functions(f.kernel.body) > kMaxInlined;
  f.begin = f.function->getArg(1);
  f.end = f.function->getArg(2);
  llvm::LLVMContext& context = f.b.getContext();
  BasicBlock* entry = BasicBlock::Create(context, "entry", f.function);
  BasicBlock* body = BasicBlock::Create(context, "body", f.function);
  f.done = BasicBlock::Create(context, "done");
  f.b.SetInsertPoint(entry);
  f.b.CreateCondBr(f.b.CreateICmpSLT(f.begin, f.end), body, f.done);
  f.b.SetInsertPoint(body);
  load_pointers(f);
  TRY(emit_block(f, f.kernel.body));
  f.b.CreateBr(f.done);
  f.function->insert(f.function->end(), f.done);
  f.b.SetInsertPoint(f.done);
  // What went past the caches is in no order with what tells others that the call is done.
  if (f.streams) fence_streams(f);
  f.b.CreateRetVoid();
  return {};
}

}  // namespace hloom::emit
