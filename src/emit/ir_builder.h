// The builder of functions/ that emits LLVM IR: a Value<IrBuilder, T> is an SSA value, a scalar or a vector.
//
//   IrBuilder lanes(b, 16);                                          // at b's insertion point, <16 x …>
//   llvm::Value* y = functions::exponential(lanes.value<float>(x)).raw;
//
// Most of emit/ wants apply.h, which picks the body by opcode and type.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <span>
#include <type_traits>

#include "functions/value.h"

namespace hloom::emit {

/// Emits at the insertion point of an llvm::IRBuilder, whatever its fast-math flags, without any. Element types are
/// i1, iN, float and double; every value has `lanes` elements, a scalar if that is 1.
///
/// A few bodies (sine, cosine, tan and remainder, real and complex) have a rare path or a loop. They end the block of
/// the insertion point and go on in a new one, which the caller finds by GetInsertBlock(). Code after the
/// insertion point, if any, moves there. Vectors take the rare path lane by lane, by way of two slots in the frame.
class IrBuilder {
 public:
  template <class T>
  using Raw = llvm::Value*;

  using Any = llvm::Value*;
  template <class T>
  llvm::Value* from_any(Any x) {
    return x;
  }
  template <class T>
  Any to_any(llvm::Value* x) {
    return x;
  }

  IrBuilder(llvm::IRBuilderBase& b, unsigned lanes) : b_(b), guard_(b), lanes_(lanes) { b_.clearFastMathFlags(); }

  llvm::IRBuilderBase& ir() { return b_; }
  unsigned lanes() const { return lanes_; }

  /// An IR value in the words of functions/. Needs: x of type_of<T>().
  template <class T>
  functions::Value<IrBuilder, T> value(llvm::Value* x) {
    return {this, x};
  }
  /// The IR type of T: bool is i1.
  template <class T>
  llvm::Type* type_of() {
    return vector_of(scalar_type_of<T>());
  }
  /// <lanes x element>, or the element alone.
  llvm::Type* vector_of(llvm::Type* element);

  template <class T>
  llvm::Value* constant(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return llvm::ConstantFP::get(type_of<T>(), llvm::APFloat(x));
    else
      return llvm::ConstantInt::get(type_of<T>(), static_cast<std::uint64_t>(x), std::is_signed_v<T>);
  }

  template <class T>
  llvm::Value* add(llvm::Value* x, llvm::Value* y) {
    return functions::is_real<T> ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
  }
  template <class T>
  llvm::Value* sub(llvm::Value* x, llvm::Value* y) {
    return functions::is_real<T> ? b_.CreateFSub(x, y) : b_.CreateSub(x, y);
  }
  template <class T>
  llvm::Value* mul(llvm::Value* x, llvm::Value* y) {
    return functions::is_real<T> ? b_.CreateFMul(x, y) : b_.CreateMul(x, y);
  }
  template <class T>
  llvm::Value* div(llvm::Value* x, llvm::Value* y) {
    if (functions::is_real<T>) return b_.CreateFDiv(x, y);
    return std::is_signed_v<T> ? b_.CreateSDiv(x, y) : b_.CreateUDiv(x, y);
  }
  template <class T>
  llvm::Value* rem(llvm::Value* x, llvm::Value* y) {
    return std::is_signed_v<T> ? b_.CreateSRem(x, y) : b_.CreateURem(x, y);
  }
  template <class T>
  llvm::Value* bit_and(llvm::Value* x, llvm::Value* y) {
    return b_.CreateAnd(x, y);
  }
  template <class T>
  llvm::Value* bit_or(llvm::Value* x, llvm::Value* y) {
    return b_.CreateOr(x, y);
  }
  template <class T>
  llvm::Value* bit_xor(llvm::Value* x, llvm::Value* y) {
    return b_.CreateXor(x, y);
  }
  template <class T>
  llvm::Value* shift_left(llvm::Value* x, llvm::Value* y) {
    return b_.CreateShl(x, y);
  }
  template <class T>
  llvm::Value* shift_right(llvm::Value* x, llvm::Value* y) {
    return std::is_signed_v<T> ? b_.CreateAShr(x, y) : b_.CreateLShr(x, y);
  }

  template <class T>
  llvm::Value* equal(llvm::Value* x, llvm::Value* y) {
    return functions::is_real<T> ? b_.CreateFCmpOEQ(x, y) : b_.CreateICmpEQ(x, y);
  }
  template <class T>
  llvm::Value* not_equal(llvm::Value* x, llvm::Value* y) {
    return functions::is_real<T> ? b_.CreateFCmpUNE(x, y) : b_.CreateICmpNE(x, y);
  }
  template <class T>
  llvm::Value* less(llvm::Value* x, llvm::Value* y) {
    if (functions::is_real<T>) return b_.CreateFCmpOLT(x, y);
    return std::is_signed_v<T> ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y);
  }
  template <class T>
  llvm::Value* less_equal(llvm::Value* x, llvm::Value* y) {
    if (functions::is_real<T>) return b_.CreateFCmpOLE(x, y);
    return std::is_signed_v<T> ? b_.CreateICmpSLE(x, y) : b_.CreateICmpULE(x, y);
  }
  template <class T>
  llvm::Value* select(llvm::Value* condition, llvm::Value* yes, llvm::Value* no) {
    return b_.CreateSelect(condition, yes, no);
  }

  template <class T>
  llvm::Value* negate(llvm::Value* x) {
    return b_.CreateFNeg(x);
  }
  template <class T>
  llvm::Value* fma(llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }
  template <class T>
  llvm::Value* sqrt(llvm::Value* x) {
    return unary(llvm::Intrinsic::sqrt, x);
  }
  template <class T>
  llvm::Value* abs(llvm::Value* x) {
    return unary(llvm::Intrinsic::fabs, x);
  }
  template <class T>
  llvm::Value* floor(llvm::Value* x) {
    return unary(llvm::Intrinsic::floor, x);
  }
  template <class T>
  llvm::Value* ceil(llvm::Value* x) {
    return unary(llvm::Intrinsic::ceil, x);
  }
  template <class T>
  llvm::Value* trunc(llvm::Value* x) {
    return unary(llvm::Intrinsic::trunc, x);
  }
  template <class T>
  llvm::Value* round_even(llvm::Value* x) {
    return unary(llvm::Intrinsic::roundeven, x);
  }

  template <class To, class T>
  llvm::Value* bits_as(llvm::Value* x) {
    return b_.CreateBitCast(x, type_of<To>());
  }
  template <class To, class T>
  llvm::Value* resize(llvm::Value* x) {
    // C++ turns to bool by != 0; HLO's integers never become bool here.
    static_assert(!std::is_same_v<To, bool>);
    return b_.CreateIntCast(x, type_of<To>(), std::is_signed_v<T>);
  }
  template <class To, class T>
  llvm::Value* to_real(llvm::Value* x) {
    if (functions::is_real<T>) return b_.CreateFPCast(x, type_of<To>());
    return std::is_signed_v<T> ? b_.CreateSIToFP(x, type_of<To>()) : b_.CreateUIToFP(x, type_of<To>());
  }
  template <class To, class T>
  llvm::Value* to_integer(llvm::Value* x) {
    const auto id = std::is_signed_v<To> ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {type_of<To>(), x->getType()}, {x});
  }

  /// f16 and f32 by the processor's own instructions, which keep denormals.
  llvm::Value* half_to_float(llvm::Value* x) {
    return b_.CreateFPExt(b_.CreateBitCast(x, vector_of(b_.getHalfTy())), type_of<float>());
  }
  llvm::Value* float_to_half(llvm::Value* x) {
    return b_.CreateBitCast(b_.CreateFPTrunc(x, vector_of(b_.getHalfTy())), type_of<std::uint16_t>());
  }

  template <class T>
  llvm::Value* count_ones(llvm::Value* x) {
    return unary(llvm::Intrinsic::ctpop, x);
  }
  template <class T>
  llvm::Value* count_leading_zeros(llvm::Value* x) {
    return b_.CreateIntrinsic(llvm::Intrinsic::ctlz, {x->getType()}, {x, b_.getFalse()});
  }

  template <class T, class X, class Rare>
  llvm::Value* rarely(llvm::Value* condition, llvm::Value* common, llvm::Value* x, Rare rare) {
    IrBuilder scalar(b_, 1);
    RarePath path = begin_rare(condition, common, x);
    llvm::Value* y = rare(functions::Value<IrBuilder, X>{&scalar, path.x}).raw;
    return end_rare(path, y);
  }
  template <class T>
  llvm::Value* entry(std::span<const T> table, llvm::Value* index) {
    return load_entry(llvm::ConstantDataArray::get(b_.getContext(), llvm::ArrayRef<T>(table.data(), table.size())),
                      index);
  }
  template <class T, class GoingOn, class Step>
  llvm::Value* repeat_while(llvm::Value* state, GoingOn going_on, Step step) {
    Loop loop = begin_loop(state);
    llvm::Value* condition = going_on(loop.state);
    enter_body(loop, condition);
    end_loop(loop, b_.CreateSelect(condition, step(loop.state), loop.state));
    return loop.state;
  }

 private:
  struct RarePath {
    llvm::BasicBlock* from;
    llvm::BasicBlock* lane;  ///< computes one
    llvm::BasicBlock* join;
    llvm::BasicBlock::iterator after;
    llvm::Value* common;
    llvm::Value* x;              ///< of this lane
    llvm::PHINode* left;         ///< vectors: a bit for each lane still to do
    llvm::Value* index;          ///< vectors: the lane
    llvm::AllocaInst* results;   ///< vectors: all lanes
  };
  struct Loop {
    llvm::BasicBlock* header;
    llvm::BasicBlock* exit;
    llvm::BasicBlock::iterator after;
    llvm::PHINode* state;
  };

  template <class T>
  llvm::Type* scalar_type_of() {
    if constexpr (std::is_same_v<T, bool>)
      return b_.getInt1Ty();
    else if constexpr (std::is_same_v<T, float>)
      return b_.getFloatTy();
    else if constexpr (std::is_same_v<T, double>)
      return b_.getDoubleTy();
    else
      return b_.getIntNTy(8 * sizeof(T));
  }
  llvm::Value* unary(llvm::Intrinsic::ID id, llvm::Value* x) { return b_.CreateUnaryIntrinsic(id, x); }
  llvm::Value* any(llvm::Value* condition);
  llvm::BasicBlock* new_block(const char* name);
  /// Cuts the block at the insertion point; what stood after it begins the block that is returned, and has no
  /// predecessor yet.
  llvm::BasicBlock* cut();
  RarePath begin_rare(llvm::Value* condition, llvm::Value* common, llvm::Value* x);
  void begin_lane(RarePath&, llvm::Value* condition, llvm::Value* x);
  llvm::Value* end_rare(const RarePath&, llvm::Value* y);
  llvm::Value* end_lanes(const RarePath&, llvm::Value* y);
  llvm::AllocaInst* slot(llvm::Type* type);
  llvm::Value* load_entry(llvm::Constant* table, llvm::Value* index);
  Loop begin_loop(llvm::Value* state);
  void enter_body(const Loop&, llvm::Value* condition);
  void end_loop(const Loop&, llvm::Value* next);

  llvm::IRBuilderBase& b_;
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
  unsigned lanes_;
};

}  // namespace hloom::emit
