// Loops, one iteration after the other and by lanes.
#include <llvm/IR/Constants.h>

#include <algorithm>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"

namespace hloom::emit {

using kernels::Loop;
using llvm::BasicBlock;
using llvm::ConstantInt;
using llvm::PHINode;
using llvm::Value;

namespace {

llvm::SmallVector<PHINode*, 4> phis_of(Function& f, const Carried& values, BasicBlock* from) {
  llvm::SmallVector<PHINode*, 4> phis;
  for (Value* value : values) {
    PHINode* phi = f.b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, from);
    phis.push_back(phi);
  }
  return phis;
}

// Constant iterations, or -1.
std::int64_t constant_count(const Range& range) {
  const auto* from = llvm::dyn_cast<ConstantInt>(range.from);
  const auto* to = llvm::dyn_cast<ConstantInt>(range.to);
  if (!from || !to) return -1;
  const std::int64_t length = to->getSExtValue() - from->getSExtValue();
  return length <= 0 ? 0 : (length + range.step - 1) / range.step;
}

}  // namespace

Expected<Carried> emit_for(Function& f, const Range& range, const Carried& initial,
                           llvm::function_ref<Expected<Carried>(Value* i, const Carried&)> body) {
  const std::int64_t count = constant_count(range);
  if (count == 0) return initial;
  if (count == 1) return body(range.from, initial);
  llvm::IRBuilder<>& b = f.b;
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* loop = BasicBlock::Create(b.getContext(), "loop", f.function);
  BasicBlock* exit = BasicBlock::Create(b.getContext(), "exit");
  const bool tested = count < 0 && !range.nonempty;
  if (tested)
    b.CreateCondBr(b.CreateICmpSLT(range.from, range.to), loop, exit);
  else
    b.CreateBr(loop);

  b.SetInsertPoint(loop);
  PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(range.from, before);
  const auto inside = phis_of(f, initial, before);
  const Carried next = TRY(body(i, Carried(inside.begin(), inside.end())));
  Value* next_i = b.CreateAdd(i, b.getInt64(static_cast<std::uint64_t>(range.step)), "", true, true);
  BasicBlock* latch = b.GetInsertBlock();
  Value* more = range.last ? b.CreateICmpSLT(i, range.last) : b.CreateICmpSLT(next_i, range.to);
  if (range.last) next_i = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, next_i, range.last);
  b.CreateCondBr(more, loop, exit);
  i->addIncoming(next_i, latch);
  for (std::size_t k = 0; k < next.size(); ++k) inside[k]->addIncoming(next[k], latch);

  f.function->insert(f.function->end(), exit);
  b.SetInsertPoint(exit);
  if (!tested) return next;
  const auto results = phis_of(f, next, latch);
  for (std::size_t k = 0; k < next.size(); ++k) results[k]->addIncoming(initial[k], before);
  return Carried(results.begin(), results.end());
}

namespace {

// The iterations of this call.
Bounds bounds_of(Function& f, const Loop& loop) {
  llvm::IRBuilder<>& b = f.b;
  const auto constant = [&](std::int64_t x) { return b.getInt64(static_cast<std::uint64_t>(x)); };
  Value* from = loop.from_value == kernels::kNoValue ? constant(loop.from) : uniform(f, loop.from_value).real;
  Value* to = loop.to_value == kernels::kNoValue ? constant(loop.to) : uniform(f, loop.to_value).real;
  const bool constants = loop.from_value == kernels::kNoValue && loop.to_value == kernels::kNoValue;
  const std::int64_t count = constants ? std::max<std::int64_t>(0, loop.to - loop.from) : 0;
  // One block is the whole loop, and the entry has tested that the call holds it.
  if (loop.block == 0 || (f.kernel.blocks == 1 && count <= loop.block)) return {from, to, count};
  HLOOM_CHECK(constants);
  const auto own = [&](Value* block) {  // counted from the loop's first
    if (loop.first_block == 0) return block;
    return static_cast<Value*>(b.CreateBinaryIntrinsic(
        llvm::Intrinsic::smax, b.CreateSub(block, constant(loop.first_block)), constant(0)));
  };
  Value* first = b.CreateAdd(b.CreateMul(own(f.begin), constant(loop.block)), from);
  Value* last = b.CreateAdd(b.CreateMul(own(f.end), constant(loop.block)), from);
  if (count % loop.block != 0 || (f.kernel.blocks - loop.first_block) * loop.block > count)
    last = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, last, to);
  // The last block may be shorter than the others, or nothing; a call may end before the loop's first.
  const std::int64_t least =
      loop.first_block > 0 ? 0 : std::clamp<std::int64_t>(count - (f.kernel.blocks - 1) * loop.block, 0, loop.block);
  const bool whole = loop.lanes > 0 && loop.block % loop.lanes == 0 && count % loop.lanes == 0;
  return {first, last, least, whole};
}

// One iteration, if the call has any.
Expected<> emit_range(Function& f, const Loop& loop, const Bounds& bounds) {
  const auto body = [&](Value* i, const Carried&) -> Expected<Carried> {
    set(f, loop.variable, {i, nullptr}, false);
    set(f, loop.end, {bounds.to, nullptr}, false);
    TRY(emit_block(f, loop.body));
    return Carried();
  };
  TRY(emit_for(f, {bounds.from, bounds.to, std::max<std::int64_t>(loop.to - loop.from, 1), bounds.least > 0}, {}, body));
  return {};
}

Expected<> emit_serial(Function& f, const Loop& loop, const Bounds& bounds) {
  const auto is_vector = [&](const kernels::Carry& c) { return f.is_varying(c.inside); };
  Carried initial;
  for (const kernels::Carry& c : loop.carries) append(initial, operand(f, c.initial, is_vector(c)));
  const auto body = [&](Value* i, const Carried& inside) -> Expected<Carried> {
    set(f, loop.variable, {i, nullptr}, false);
    std::size_t k = 0;
    for (const kernels::Carry& c : loop.carries) set(f, c.inside, take(inside, k, f.kernel.type(c.inside)), is_vector(c));
    TRY(emit_block(f, loop.body));
    Carried next;
    for (const kernels::Carry& c : loop.carries) append(next, operand(f, c.next, is_vector(c)));
    return next;
  };
  const Carried results = TRY(emit_for(f, {bounds.from, bounds.to, 1, bounds.least > 0}, initial, body));
  std::size_t k = 0;
  for (const kernels::Carry& c : loop.carries) set(f, c.result, take(results, k, f.kernel.type(c.result)), is_vector(c));
  return {};
}

}  // namespace

Expected<> emit_loop(Function& f, const Loop& loop) {
  const Bounds bounds = bounds_of(f, loop);
  if (loop.end != kernels::kNoValue) return emit_range(f, loop, bounds);
  return loop.lanes > 0 ? emit_lanes(f, loop, bounds) : emit_serial(f, loop, bounds);
}

}  // namespace hloom::emit
