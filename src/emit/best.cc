// The place of the best value in a loop by lanes. A lane keeps its own best, in the order of its iterations; at the end the
// values become integers in the same order, whose greatest or least is found first, then the place among equals.
#include <llvm/IR/Constants.h>

#include "emit/function.h"

namespace hloom::emit {

using kernels::Best;
using llvm::Value;

namespace {

bool is_real(const Value* lanes) { return lanes->getType()->getScalarType()->isFloatingPointTy(); }

llvm::Constant* worst(llvm::Type* type, bool least, bool is_signed) {
  if (type->isFloatTy() || type->isDoubleTy()) return llvm::ConstantFP::getInfinity(type, !least);
  const unsigned bits = type->getIntegerBitWidth();
  const llvm::APInt low = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits);
  const llvm::APInt high = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  return llvm::ConstantInt::get(type, least ? high : low);
}

// Floats: also where one of the two is a NaN.
llvm::CmpInst::Predicate better(const Best& best, bool real, bool is_signed) {
  using P = llvm::CmpInst::Predicate;
  if (real) return best.least ? (best.last ? P::FCMP_ULE : P::FCMP_ULT) : (best.last ? P::FCMP_UGE : P::FCMP_UGT);
  if (is_signed) return best.least ? (best.last ? P::ICMP_SLE : P::ICMP_SLT) : (best.last ? P::ICMP_SGE : P::ICMP_SGT);
  return best.least ? (best.last ? P::ICMP_ULE : P::ICMP_ULT) : (best.last ? P::ICMP_UGE : P::ICMP_UGT);
}

// Integers with sign in the order of floats: -0 as 0, a NaN before or behind all others.
Value* ordered(Function& f, Value* x, bool least) {
  llvm::IRBuilder<>& b = f.b;
  Value* is_nan = b.CreateFCmpUNO(x, x);
  const unsigned bits = x->getType()->getScalarSizeInBits();
  llvm::Type* integers = vector_type(f, b.getIntNTy(bits));
  Value* whole = b.CreateBitCast(b.CreateFAdd(x, llvm::ConstantFP::get(x->getType(), 0.0)), integers);
  Value* sign = b.CreateAShr(whole, llvm::ConstantInt::get(integers, bits - 1));
  Value* magnitude = b.CreateAnd(sign, llvm::ConstantInt::get(integers, llvm::APInt::getSignedMaxValue(bits)));
  const llvm::APInt nan = least ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits);
  return b.CreateSelect(is_nan, llvm::ConstantInt::get(integers, nan), b.CreateXor(whole, magnitude));
}

bool has_sign(const Function& f, const Best& best) { return !is_unsigned(f.kernel.type(best.value)); }

}  // namespace

BestLanes begin_best(Function& f, const kernels::Loop& loop, const Best& best) {
  llvm::Type* type = element_ir_type(f.b.getContext(), f.kernel.type(best.value));
  llvm::Type* counts = loop.from > INT32_MIN && loop.to < INT32_MAX - loop.lanes ? f.b.getInt32Ty() : f.b.getInt64Ty();
  // A lane without iterations gives way to one with: its place lies behind all for the first, before all for the last.
  const std::int64_t place = best.last ? loop.from - loop.lanes : loop.from;
  return {splat(f, worst(type, best.least, has_sign(f, best))),
          splat(f, llvm::ConstantInt::get(counts, static_cast<std::uint64_t>(place), true))};
}

BestLanes take_better(Function& f, const Best& best, const BestLanes& kept, Value* i) {
  llvm::IRBuilder<>& b = f.b;
  Value* x = varying(f, best.value).real;
  const bool real = is_real(x);
  Value* takes = b.CreateCmp(better(best, real, has_sign(f, best)), x, kept.value);
  if (real) {
    Value* may_change = b.CreateFCmpORD(kept.value, kept.value);
    if (best.last) may_change = b.CreateOr(may_change, b.CreateFCmpUNO(x, x));
    takes = b.CreateAnd(takes, may_change);
  }
  Value* place = splat(f, b.CreateTrunc(i, kept.first->getType()->getScalarType()));
  return {b.CreateSelect(takes, x, kept.value), b.CreateSelect(takes, place, kept.first)};
}

Value* best_iteration(Function& f, const Best& best, const BestLanes& kept) {
  llvm::IRBuilder<>& b = f.b;
  const bool real = is_real(kept.value), is_signed = real || has_sign(f, best);
  Value* keys = real ? ordered(f, kept.value, best.least) : kept.value;
  Value* key = best.least ? b.CreateIntMinReduce(keys, is_signed) : b.CreateIntMaxReduce(keys, is_signed);
  Value* is_best = b.CreateICmpEQ(keys, splat(f, key));
  llvm::Type* counts = kept.first->getType();
  Value* places = b.CreateAdd(kept.first, b.CreateTrunc(counting(f, 0, 1), counts));
  const unsigned bits = counts->getScalarSizeInBits();
  const llvm::APInt none = best.last ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits);
  places = b.CreateSelect(is_best, places, llvm::ConstantInt::get(counts, none));
  Value* place = best.last ? b.CreateIntMaxReduce(places, true) : b.CreateIntMinReduce(places, true);
  return b.CreateSExt(place, b.getInt64Ty());
}

}  // namespace hloom::emit
