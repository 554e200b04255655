// Loops, one iteration after the other and by lanes.
#include <llvm/IR/Constants.h>

#include <bit>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"
#include "kernels/varying.h"

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
  b.CreateCondBr(b.CreateICmpSLT(next_i, range.to), loop, exit);
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
struct Bounds {
  Value* from;
  Value* to;
  bool nonempty = false;
  bool whole = false;  ///< whole vectors only
};

Bounds bounds_of(Function& f, const Loop& loop) {
  llvm::IRBuilder<>& b = f.b;
  const auto constant = [&](std::int64_t x) { return b.getInt64(static_cast<std::uint64_t>(x)); };
  Value* from = loop.from_value == kernels::kNoValue ? constant(loop.from) : uniform(f, loop.from_value).real;
  Value* to = loop.to_value == kernels::kNoValue ? constant(loop.to) : uniform(f, loop.to_value).real;
  const bool constants = loop.from_value == kernels::kNoValue && loop.to_value == kernels::kNoValue;
  if (loop.block == 0) return {from, to, constants && loop.from < loop.to};
  HLOOM_CHECK(constants);
  const std::int64_t count = loop.to - loop.from;
  // One block is the whole loop, and the entry has tested that the call holds it.
  if (f.kernel.blocks == 1 && count <= loop.block) return {from, to, count > 0};
  Value* first = b.CreateAdd(b.CreateMul(f.begin, constant(loop.block)), from);
  Value* last = b.CreateAdd(b.CreateMul(f.end, constant(loop.block)), from);
  if (count % loop.block != 0 || f.kernel.blocks * loop.block > count)
    last = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, last, to);
  const bool whole = loop.lanes > 0 && loop.block % loop.lanes == 0 && count % loop.lanes == 0;
  return {first, last, (f.kernel.blocks - 1) * loop.block < count, whole};
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
  const Carried results = TRY(emit_for(f, {bounds.from, bounds.to, 1, bounds.nonempty}, initial, body));
  std::size_t k = 0;
  for (const kernels::Carry& c : loop.carries) set(f, c.result, take(results, k, f.kernel.type(c.result)), is_vector(c));
  return {};
}

// One vector of iterations, from `i` on. Takes and gives the folds' partial values.
Expected<Carried> emit_vector(Function& f, const Loop& loop, Value* i, Value* mask, const Carried& partial) {
  f.lanes.mask = mask;
  f.held(loop.variable) = {Held::Form::Strided, {i, nullptr}, 1};
  std::size_t k = 0;
  for (const kernels::Fold& fold : loop.folds)
    set(f, fold.carry.inside, take(partial, k, f.kernel.type(fold.carry.inside)), true);
  TRY(emit_block(f, loop.body));
  Carried next;
  for (const kernels::Fold& fold : loop.folds) append(next, varying(f, fold.carry.next));
  if (mask)
    for (k = 0; k < next.size(); ++k) next[k] = f.b.CreateSelect(mask, next[k], partial[k]);
  return next;
}

Value* first_lanes(Function& f, Value* count) {
  // i8 counts fit, and compare in the fewest registers.
  Value* narrow = f.b.CreateTrunc(count, f.b.getInt8Ty());
  llvm::SmallVector<std::uint8_t, 64> lanes;
  for (int l = 0; l < f.lanes.count; ++l) lanes.push_back(static_cast<std::uint8_t>(l));
  return f.b.CreateICmpULT(llvm::ConstantDataVector::get(f.b.getContext(), lanes), splat(f, narrow));
}

Value* half_of(Function& f, Value* lanes, int from, int count) {
  llvm::SmallVector<int, 64> picked;
  for (int l = 0; l < count; ++l) picked.push_back(from + l);
  return count == 1 ? f.b.CreateExtractElement(lanes, static_cast<std::uint64_t>(from))
                    : f.b.CreateShuffleVector(lanes, picked);
}

// Lane l with lane l + L/2, until one is left.
Lanes fold_lanes(Function& f, const kernels::Fold& fold, Lanes lanes) {
  const DType type = f.kernel.type(fold.carry.result);
  const auto half = [&](int from, int count) {
    return Lanes{half_of(f, lanes.real, from, count), lanes.imag ? half_of(f, lanes.imag, from, count) : nullptr};
  };
  for (int count = f.lanes.count / 2; count > 0; count /= 2) lanes = emit_binary(f.b, fold.combine, type, half(0, count), half(count, count));
  return lanes;
}

}  // namespace

namespace {

Expected<> emit_lanes(Function& f, const Loop& loop, const Bounds& bounds) {
  HLOOM_CHECK(f.lanes.count == 0 && std::has_single_bit(static_cast<unsigned>(loop.lanes)) && loop.lanes <= 128);
  llvm::IRBuilder<>& b = f.b;
  f.lanes = {loop.lanes, nullptr, kernels::varying_values(f.kernel, loop)};
  Carried partial;
  for (const kernels::Fold& fold : loop.folds) append(partial, varying(f, fold.carry.initial));

  Value* length = b.CreateSub(bounds.to, bounds.from);
  if (!bounds.nonempty) length = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, length, b.getInt64(0));
  Value* rest = bounds.whole ? b.getInt64(0) : b.CreateAnd(length, b.getInt64(static_cast<unsigned>(loop.lanes - 1)));
  Value* middle = b.CreateAdd(bounds.from, b.CreateSub(length, rest));
  partial = TRY(emit_for(f, {bounds.from, middle, loop.lanes, bounds.whole && bounds.nonempty}, partial,
                         [&](Value* i, const Carried& p) { return emit_vector(f, loop, i, nullptr, p); }));
  partial = TRY(emit_when(f, b.CreateIsNotNull(rest), partial,
                          [&] { return emit_vector(f, loop, middle, first_lanes(f, rest), partial); }));

  std::size_t k = 0;
  for (const kernels::Fold& fold : loop.folds) {
    const Lanes folded = fold_lanes(f, fold, take(partial, k, f.kernel.type(fold.carry.result)));
    set(f, fold.carry.result, folded, false);
  }
  f.lanes = {};
  return {};
}

}  // namespace

Expected<> emit_loop(Function& f, const Loop& loop) {
  const Bounds bounds = bounds_of(f, loop);
  if (loop.lanes > 0) return emit_lanes(f, loop, bounds);
  return emit_serial(f, loop, bounds);
}

}  // namespace hloom::emit
