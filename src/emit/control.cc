// Blocks of statements, whiles, ifs and calls.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"
#include "emit/symbol_name.h"

namespace hloom::emit {

using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Value;

namespace {

Expected<> emit(Function& f, const kernels::Line& s) { return emit_line(f, s); }
Expected<> emit(Function& f, const kernels::MultiplyAdd& s) { return emit_multiply_add(f, s); }
Expected<> emit(Function& f, const kernels::Transpose& s) {
  emit_transpose(f, s);
  return {};
}
Expected<> emit(Function& f, const kernels::Affine& s) {
  emit_affine(f, s);
  return {};
}
Expected<> emit(Function& f, const kernels::Load& s) { return emit_load(f, s); }
Expected<> emit(Function& f, const kernels::Store& s) { return emit_store(f, s); }
Expected<> emit(Function& f, const kernels::Prefetch& s) {
  emit_prefetch(f, s);
  return {};
}
Expected<> emit(Function& f, const kernels::Loop& s) { return emit_loop(f, s); }
Expected<> emit(Function& f, const kernels::While& s) { return emit_while(f, s); }
Expected<> emit(Function& f, const kernels::If& s) { return emit_if(f, s); }
Expected<> emit(Function& f, const kernels::Call& s) { return emit_call(f, s); }

}  // namespace

Expected<> emit_block(Function& f, const kernels::Block& block) {
  for (const kernels::Statement& s : block) TRY(std::visit([&](const auto& x) { return emit(f, x); }, s.of));
  return {};
}

Expected<Carried> emit_when(Function& f, Value* condition, const Carried& otherwise,
                            llvm::function_ref<Expected<Carried>()> body) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return known->isZero() ? Expected<Carried>(otherwise) : body();
  llvm::IRBuilder<>& b = f.b;
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* then = BasicBlock::Create(b.getContext(), "then", f.function);
  BasicBlock* join = BasicBlock::Create(b.getContext(), "join");
  b.CreateCondBr(condition, then, join);
  b.SetInsertPoint(then);
  Carried results = TRY(body());
  BasicBlock* end = b.GetInsertBlock();
  b.CreateBr(join);
  f.function->insert(f.function->end(), join);
  b.SetInsertPoint(join);
  for (std::size_t k = 0; k < results.size(); ++k) {
    PHINode* phi = b.CreatePHI(results[k]->getType(), 2);
    phi->addIncoming(results[k], end);
    phi->addIncoming(otherwise[k], before);
    results[k] = phi;
  }
  return results;
}

Expected<> emit_while(Function& f, const kernels::While& loop) {
  llvm::IRBuilder<>& b = f.b;
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* header = BasicBlock::Create(b.getContext(), "while", f.function);
  Carried initial;
  for (const kernels::Carry& c : loop.carries) append(initial, uniform(f, c.initial));
  b.CreateBr(header);
  b.SetInsertPoint(header);
  llvm::SmallVector<PHINode*, 4> phis;
  Carried inside;
  for (Value* value : initial) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    inside.push_back(phis.back());
  }
  std::size_t k = 0;
  for (const kernels::Carry& c : loop.carries) set(f, c.inside, take(inside, k, f.kernel.type(c.inside)), false);
  TRY(emit_block(f, loop.condition));
  BasicBlock* body = BasicBlock::Create(b.getContext(), "do", f.function);
  BasicBlock* exit = BasicBlock::Create(b.getContext(), "exit");
  b.CreateCondBr(uniform(f, loop.predicate).real, body, exit);

  b.SetInsertPoint(body);
  TRY(emit_block(f, loop.body));
  Carried next;
  for (const kernels::Carry& c : loop.carries) append(next, uniform(f, c.next));
  for (k = 0; k < next.size(); ++k) phis[k]->addIncoming(next[k], b.GetInsertBlock());
  b.CreateBr(header);
  f.function->insert(f.function->end(), exit);
  b.SetInsertPoint(exit);
  for (const kernels::Carry& c : loop.carries) f.held(c.result) = f.held(c.inside);
  return {};
}

namespace {

// Branches to the blocks by selector; the last one takes what is out of range.
void dispatch(Function& f, Value* selector, llvm::ArrayRef<BasicBlock*> branches) {
  if (selector->getType()->isIntegerTy(1)) {
    f.b.CreateCondBr(selector, branches.front(), branches[branches.size() > 1 ? 1 : 0]);
    return;
  }
  llvm::SwitchInst* choice = f.b.CreateSwitch(selector, branches.back(), static_cast<unsigned>(branches.size()));
  for (std::size_t i = 0; i + 1 < branches.size(); ++i) choice->addCase(f.b.getInt64(i), branches[i]);
}

}  // namespace

Expected<> emit_if(Function& f, const kernels::If& choice) {
  llvm::IRBuilder<>& b = f.b;
  const std::size_t count = choice.branches.size();
  llvm::SmallVector<BasicBlock*, 4> branches;
  for (std::size_t i = 0; i < count; ++i) branches.push_back(BasicBlock::Create(b.getContext(), "branch", f.function));
  BasicBlock* join = BasicBlock::Create(b.getContext(), "join");
  dispatch(f, uniform(f, choice.selector).real, branches);
  llvm::SmallVector<Carried, 4> results(count);
  for (std::size_t i = 0; i < count; ++i) {
    b.SetInsertPoint(branches[i]);
    TRY(emit_block(f, choice.branches[i]));
    for (const kernels::If::Result& r : choice.results) append(results[i], uniform(f, r.from[i]));
    branches[i] = b.GetInsertBlock();
    b.CreateBr(join);
  }
  f.function->insert(f.function->end(), join);
  b.SetInsertPoint(join);
  Carried joined;
  for (std::size_t k = 0; k < results.front().size(); ++k) {
    PHINode* phi = b.CreatePHI(results.front()[k]->getType(), static_cast<unsigned>(count));
    for (std::size_t i = 0; i < count; ++i) phi->addIncoming(results[i][k], branches[i]);
    joined.push_back(phi);
  }
  std::size_t k = 0;
  for (const kernels::If::Result& r : choice.results) set(f, r.result, take(joined, k, f.kernel.type(r.result)), false);
  return {};
}

namespace {

// One piece of the stack for the pointers of all calls.
Value* pointer_room(Function& f, std::size_t count) {
  llvm::IRBuilder<>& b = f.b;
  llvm::IRBuilder<> at_entry(&f.function->getEntryBlock(), f.function->getEntryBlock().begin());
  if (auto* room = llvm::cast_if_present<llvm::AllocaInst>(f.call_arguments)) {
    if (room->getAllocationSize(f.function->getDataLayout())->getFixedValue() >= 8 * count) return room;
  }
  return f.call_arguments = at_entry.CreateAlloca(llvm::ArrayType::get(b.getPtrTy(), count));
}

}  // namespace

Expected<> emit_call(Function& f, const kernels::Call& call) {
  llvm::IRBuilder<>& b = f.b;
  llvm::Module& module = *f.function->getParent();
  Value* room = pointer_room(f, call.arguments.size() + 1);
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const kernels::Call::Pointer& p = call.arguments[i];
    Value* base = f.memories[static_cast<std::size_t>(p.argument)].pointer;
    Value* address = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, static_cast<std::uint64_t>(p.byte_offset));
    b.CreateStore(address, b.CreateConstInBoundsGEP1_64(b.getPtrTy(), room, i));
  }
  // A callee that checks its accesses reports where this one does.
  if (f.status) b.CreateStore(f.status, b.CreateConstInBoundsGEP1_64(b.getPtrTy(), room, call.arguments.size()));
  auto* signature = f.function->getFunctionType();
  const std::string callee = symbol_name(f.kernel.callees[static_cast<std::size_t>(call.callee)]);
  llvm::Type* types[] = {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()};
  auto* fork_join = llvm::FunctionType::get(b.getVoidTy(), types, false);
  b.CreateCall(module.getOrInsertFunction(kForkJoin, fork_join),
               {module.getOrInsertFunction(callee, signature).getCallee(), room,
                b.getInt64(static_cast<std::uint64_t>(call.blocks)),
                b.getInt64(static_cast<std::uint64_t>(call.scratch_bytes))});
  return {};
}

}  // namespace hloom::emit
