// Bodies of functions that a kernel has at many places: they stand once in the module and are called. LLVM's work grows with the code,
// and where there is so much of it, the calls cost less than the instructions that would be fetched.
#include <llvm/IR/Module.h>

#include <algorithm>
#include <numeric>

#include "emit/function.h"
#include "hlo/opcode.h"

namespace hloom::emit {
namespace {

using llvm::Type;
using llvm::Value;

// Parts of a value one after the other.
template <typename T>
void append_parts(const Lanes& x, llvm::SmallVectorImpl<T*>& out) {
  const auto part = [](Value* v) {
    if constexpr (std::is_same_v<T, Type>)
      return v->getType();
    else
      return v;
  };
  out.push_back(part(x.real));
  if (x.imag != nullptr) out.push_back(part(x.imag));
}

int count(const kernels::Statement& statement) {
  if (const auto* line = std::get_if<kernels::Line>(&statement.of)) return hlo::is_function(line->opcode) ? 1 : 0;
  if (const auto* loop = std::get_if<kernels::Loop>(&statement.of)) return count_functions(loop->body);
  if (const auto* loop = std::get_if<kernels::While>(&statement.of)) return count_functions(loop->condition) + count_functions(loop->body);
  int sum = 0;
  if (const auto* branch = std::get_if<kernels::If>(&statement.of))
    for (const kernels::Block& b : branch->branches) sum += count_functions(b);
  return sum;
}

llvm::Function* make_shared(Function& f, llvm::StringRef name, std::span<const Lanes> operands, SharedBody body) {
  llvm::SmallVector<Type*, 4> types;
  for (const Lanes& x : operands) append_parts(x, types);
  llvm::Module* module = f.function->getParent();
  // What it returns is known once it is made, so it is made where the type does not count yet.
  const llvm::IRBuilderBase::InsertPointGuard guard(f.b);
  auto* draft = llvm::Function::Create(llvm::FunctionType::get(f.b.getVoidTy(), types, false), llvm::Function::InternalLinkage, "", module);
  f.b.SetInsertPoint(llvm::BasicBlock::Create(f.b.getContext(), "entry", draft));
  llvm::SmallVector<Lanes, 3> arguments;
  unsigned next = 0;
  for (const Lanes& x : operands) {
    Lanes argument{draft->getArg(next++), nullptr};
    if (x.imag != nullptr) argument.imag = draft->getArg(next++);
    arguments.push_back(argument);
  }
  const Lanes result = body(arguments);
  Value* returned = result.real;
  if (result.imag != nullptr) {
    returned = llvm::PoisonValue::get(llvm::StructType::get(result.real->getType(), result.imag->getType()));
    returned = f.b.CreateInsertValue(f.b.CreateInsertValue(returned, result.real, 0), result.imag, 1);
  }
  f.b.CreateRet(returned);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(returned->getType(), types, false), llvm::Function::InternalLinkage, name, module);
  function->splice(function->end(), draft);
  for (unsigned i = 0; i < next; ++i) draft->getArg(i)->replaceAllUsesWith(function->getArg(i));
  draft->eraseFromParent();
  function->addFnAttrs(llvm::AttrBuilder(f.b.getContext(), f.function->getAttributes().getFnAttrs()));
  function->addFnAttr(llvm::Attribute::NoInline);
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  function->setCallingConv(llvm::CallingConv::Fast);
  return function;
}

}  // namespace

int count_functions(const kernels::Block& block) {
  return std::accumulate(block.begin(), block.end(), 0, [](int sum, const kernels::Statement& s) { return sum + count(s); });
}

Lanes call_shared(Function& f, llvm::StringRef name, std::span<const Lanes> operands, SharedBody body) {
  llvm::Function* function = f.function->getParent()->getFunction(name);
  if (function == nullptr) function = make_shared(f, name, operands, body);
  llvm::SmallVector<Value*, 4> arguments;
  for (const Lanes& x : operands) append_parts(x, arguments);
  llvm::CallInst* call = f.b.CreateCall(function, arguments);
  call->setCallingConv(llvm::CallingConv::Fast);
  if (!call->getType()->isStructTy()) return {call, nullptr};
  return {f.b.CreateExtractValue(call, 0), f.b.CreateExtractValue(call, 1)};
}

}  // namespace hloom::emit
