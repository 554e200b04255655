#include "emit/ir_builder.h"

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "base/check.h"

namespace hloom::emit {

using llvm::BasicBlock;
using llvm::Value;

llvm::Type* IrBuilder::vector_of(llvm::Type* element) {
  if (lanes_ == 1) return element;
  return llvm::FixedVectorType::get(element, lanes_);
}

Value* IrBuilder::any(Value* condition) {
  return condition->getType()->isVectorTy() ? b_.CreateOrReduce(condition) : condition;
}

BasicBlock* IrBuilder::new_block(const char* name) {
  BasicBlock* current = b_.GetInsertBlock();
  return BasicBlock::Create(b_.getContext(), name, current->getParent(), current->getNextNode());
}

BasicBlock* IrBuilder::cut() {
  BasicBlock* block = b_.GetInsertBlock();
  if (b_.GetInsertPoint() == block->end()) return new_block("after");
  BasicBlock* after = block->splitBasicBlock(b_.GetInsertPoint(), "after");
  block->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(block);
  return after;
}

IrBuilder::RarePath IrBuilder::begin_rare(Value* condition, Value* common, Value* x) {
  Value* taken = any(condition);
  BasicBlock* from = b_.GetInsertBlock();
  BasicBlock* join = cut();
  BasicBlock* rare = new_block("rare");
  b_.CreateCondBr(taken, rare, join, llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(rare);
  RarePath path{from, rare, join, join->begin(), common, x, nullptr, nullptr, nullptr};
  if (lanes_ > 1) begin_lane(path, condition, x);
  return path;
}

// A loop over the bits of the condition, so that rare code is emitted once, for a scalar, however wide the vectors.
void IrBuilder::begin_lane(RarePath& path, Value* condition, Value* x) {
  llvm::AllocaInst* operands = slot(x->getType());
  path.results = slot(path.common->getType());
  b_.CreateStore(x, operands);
  b_.CreateStore(path.common, path.results);
  Value* all = b_.CreateBitCast(condition, b_.getIntNTy(lanes_));
  BasicBlock* before = b_.GetInsertBlock();
  path.lane = new_block("lane");
  b_.CreateBr(path.lane);
  b_.SetInsertPoint(path.lane);
  path.left = b_.CreatePHI(all->getType(), 2);
  path.left->addIncoming(all, before);
  Value* index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, path.left, b_.getTrue());
  path.index = b_.CreateZExtOrTrunc(index, b_.getInt64Ty());
  llvm::Type* element = x->getType()->getScalarType();
  path.x = b_.CreateLoad(element, b_.CreateInBoundsGEP(element, operands, path.index));
}

Value* IrBuilder::end_rare(const RarePath& path, Value* y) {
  if (lanes_ > 1) y = end_lanes(path, y);
  BasicBlock* rare = b_.GetInsertBlock();
  b_.CreateBr(path.join);
  b_.SetInsertPoint(path.join, path.after);
  llvm::PHINode* result = b_.CreatePHI(path.common->getType(), 2);
  result->addIncoming(path.common, path.from);
  result->addIncoming(y, rare);
  return result;
}

Value* IrBuilder::end_lanes(const RarePath& path, Value* y) {
  b_.CreateStore(y, b_.CreateInBoundsGEP(y->getType(), path.results, path.index));
  Value* one = llvm::ConstantInt::get(path.left->getType(), 1);
  Value* rest = b_.CreateAnd(path.left, b_.CreateSub(path.left, one));
  path.left->addIncoming(rest, b_.GetInsertBlock());
  BasicBlock* done = new_block("done");
  b_.CreateCondBr(b_.CreateIsNotNull(rest), path.lane, done);
  b_.SetInsertPoint(done);
  return b_.CreateLoad(path.common->getType(), path.results);
}

// In the entry block, so that a loop around does not grow the stack.
llvm::AllocaInst* IrBuilder::slot(llvm::Type* type) {
  BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(&entry, entry.begin());
  return b_.CreateAlloca(type);
}

Value* IrBuilder::load_entry(llvm::Constant* table, Value* index) {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  llvm::GlobalVariable* global = nullptr;
  for (llvm::GlobalVariable& g : module.globals())
    if (g.hasInitializer() && g.isConstant() && g.getInitializer() == table) global = &g;
  if (global == nullptr)
    global =
        new llvm::GlobalVariable(module, table->getType(), true, llvm::GlobalValue::PrivateLinkage, table, "table");
  HLOOM_CHECK(lanes_ == 1);  // only rare paths read tables
  llvm::Type* element = table->getType()->getArrayElementType();
  return b_.CreateLoad(element, b_.CreateInBoundsGEP(element, global, index));
}

IrBuilder::Loop IrBuilder::begin_loop(Value* state) {
  BasicBlock* from = b_.GetInsertBlock();
  BasicBlock* exit = cut();
  BasicBlock* header = new_block("repeat");
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  llvm::PHINode* phi = b_.CreatePHI(state->getType(), 2);
  phi->addIncoming(state, from);
  return {header, exit, exit->begin(), phi};
}

void IrBuilder::enter_body(const Loop& loop, Value* condition) {
  Value* taken = any(condition);
  BasicBlock* body = new_block("step");
  b_.CreateCondBr(taken, body, loop.exit);
  b_.SetInsertPoint(body);
}

void IrBuilder::end_loop(const Loop& loop, Value* next) {
  loop.state->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(loop.header);
  b_.SetInsertPoint(loop.exit, loop.after);
}

}  // namespace hloom::emit
