#include "emit/ir_builder.h"

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/MDBuilder.h>

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

IrBuilder::Fork IrBuilder::begin_rare(Value* condition) {
  Value* taken = any(condition);
  BasicBlock* from = b_.GetInsertBlock();
  BasicBlock* join = cut();
  BasicBlock* rare = new_block("rare");
  b_.CreateCondBr(taken, rare, join, llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(rare);
  return {from, join, join->begin()};
}

Value* IrBuilder::end_rare(const Fork& fork, Value* common, Value* both) {
  BasicBlock* rare = b_.GetInsertBlock();
  b_.CreateBr(fork.join);
  b_.SetInsertPoint(fork.join, fork.after);
  llvm::PHINode* result = b_.CreatePHI(common->getType(), 2);
  result->addIncoming(common, fork.from);
  result->addIncoming(both, rare);
  return result;
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
