// Elementwise ops as machine code, for tests: each as emit/apply.h emits it and as functions/evaluate.h computes it.
#pragma once

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emit/apply.h"
#include "functions/evaluate.h"
#include "jit/code.h"
#include "jit/compile_object.h"

namespace hloom::emit {

using functions::Scalar;
using hlo::Opcode;

/// An elementwise op as both builders see it. `operand` is the type of all operands.
struct Op {
  std::string name;
  DType operand, result;
  int arity;
  std::function<Lanes(llvm::IRBuilderBase&, const Lanes*)> emit;
  std::function<Scalar(const Scalar*)> evaluate;
};

inline DType result_of(Opcode opcode, DType type) {
  if (opcode == Opcode::IsFinite) return DType::Pred;
  const bool gives_real = opcode == Opcode::Abs || opcode == Opcode::Real || opcode == Opcode::Imag;
  return gives_real ? real_type(type) : type;
}

inline Op op_of(Opcode opcode, DType type) {
  Op op{std::string(hlo::name(opcode)) + " of " + std::string(name(type)),
        type,
        result_of(opcode, type),
        hlo::arity(opcode),
        {},
        {}};
  if (op.arity == 1) {
    op.emit = [=](llvm::IRBuilderBase& b, const Lanes* x) { return emit_unary(b, opcode, type, x[0]); };
    op.evaluate = [=](const Scalar* x) { return functions::evaluate_unary(opcode, type, x[0]); };
  } else if (opcode == Opcode::Clamp) {
    op.emit = [=](llvm::IRBuilderBase& b, const Lanes* x) { return emit_clamp(b, type, x[0], x[1], x[2]); };
    op.evaluate = [=](const Scalar* x) { return functions::evaluate_clamp(type, x[0], x[1], x[2]); };
  } else {
    op.emit = [=](llvm::IRBuilderBase& b, const Lanes* x) { return emit_binary(b, opcode, type, x[0], x[1]); };
    op.evaluate = [=](const Scalar* x) { return functions::evaluate_binary(opcode, type, x[0], x[1]); };
  }
  return op;
}

inline Op convert_of(DType from, DType to) {
  return {"convert of " + std::string(name(from)) + " to " + std::string(name(to)),
          from,
          to,
          1,
          [=](llvm::IRBuilderBase& b, const Lanes* x) { return emit_convert(b, from, to, x[0]); },
          [=](const Scalar* x) { return functions::evaluate_convert(from, to, x[0]); }};
}

inline Op compare_of(hlo::Direction direction, hlo::Comparison comparison, DType type) {
  return {
      "compare of " + std::string(name(type)),
      type,
      DType::Pred,
      2,
      [=](llvm::IRBuilderBase& b, const Lanes* x) { return emit_compare(b, direction, comparison, type, x[0], x[1]); },
      [=](const Scalar* x) { return functions::evaluate_compare(direction, comparison, type, x[0], x[1]); }};
}

// Code: void f(void* const* arrays, i64 n) for n a multiple of the lanes; arrays: operands, then the result.

class Compiled {
 public:
  Compiled(const Op& op, unsigned lanes) {
    static const std::unique_ptr<llvm::TargetMachine> machine = *jit::make_target_machine();
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    build(module, op, lanes);
    std::string text;
    llvm::raw_string_ostream stream(text);
    EXPECT_FALSE(llvm::verifyModule(module, &stream)) << text;
    code_ = *jit::Code::link({*jit::compile_object(module, *machine)}, {});
    function_ = reinterpret_cast<Function>(*code_->lookup("f"));
  }
  void operator()(void* const* arrays, std::int64_t n) const { function_(arrays, n); }

 private:
  using Function = void (*)(void* const*, std::int64_t);

  static llvm::Type* element_type(llvm::IRBuilder<>& b, DType part) {
    if (part == DType::F32) return b.getFloatTy();
    if (part == DType::F64) return b.getDoubleTy();
    return b.getIntNTy(static_cast<unsigned>(8 * byte_width(part)));
  }
  // Part `part` of elements [i, i + lanes): a gather by scalars, so that complex numbers may lie interleaved.
  static llvm::Value* load_part(llvm::IRBuilder<>& b, llvm::Value* array, DType type, llvm::Value* i, unsigned lanes,
                                unsigned part) {
    llvm::Type* element = element_type(b, real_type(type));
    const unsigned parts = is_complex(type) ? 2 : 1;
    llvm::Value* first = b.CreateGEP(element, array, b.CreateMul(i, b.getInt64(parts)));
    llvm::Value* x = nullptr;
    if (lanes == 1 || parts == 1) {
      llvm::Type* all = lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
      x = b.CreateAlignedLoad(all, b.CreateGEP(element, first, b.getInt64(part)), llvm::Align(1));
    } else {
      llvm::Value* both = b.CreateAlignedLoad(llvm::FixedVectorType::get(element, 2 * lanes), first, llvm::Align(1));
      llvm::SmallVector<int> picks;
      for (unsigned l = 0; l < lanes; ++l) picks.push_back(static_cast<int>(2 * l + part));
      x = b.CreateShuffleVector(both, picks);
    }
    return type == DType::Pred ? b.CreateIsNotNull(x) : x;
  }
  static void store(llvm::IRBuilder<>& b, llvm::Value* array, DType type, llvm::Value* i, unsigned lanes,
                    const Lanes& y) {
    llvm::Type* element = element_type(b, real_type(type));
    const unsigned parts = is_complex(type) ? 2 : 1;
    llvm::Value* first = b.CreateGEP(element, array, b.CreateMul(i, b.getInt64(parts)));
    llvm::Value* x = y.real;
    if (type == DType::Pred) x = b.CreateZExt(x, lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes));
    if (parts == 2 && lanes == 1) {
      b.CreateAlignedStore(y.imag, b.CreateGEP(element, first, b.getInt64(1)), llvm::Align(1));
    } else if (parts == 2) {
      llvm::SmallVector<int> pairs;
      for (unsigned l = 0; l < lanes; ++l) pairs.append({static_cast<int>(l), static_cast<int>(lanes + l)});
      x = b.CreateShuffleVector(y.real, y.imag, pairs);
    }
    b.CreateAlignedStore(x, first, llvm::Align(1));
  }
  // The end of the loop over i; gives its first instruction.
  static llvm::Instruction* close_loop(llvm::IRBuilder<>& b, llvm::PHINode* i, llvm::Value* n, unsigned lanes,
                                       llvm::BasicBlock* loop, llvm::BasicBlock* exit) {
    llvm::Value* next = b.CreateAdd(i, b.getInt64(lanes));
    i->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpULT(next, n), loop, exit);
    return llvm::cast<llvm::Instruction>(next);
  }
  static void build(llvm::Module& module, const Op& op, unsigned lanes) {
    llvm::IRBuilder<> b(module.getContext());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty()}, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    auto* entry = llvm::BasicBlock::Create(module.getContext(), "entry", f);
    auto* loop = llvm::BasicBlock::Create(module.getContext(), "loop", f);
    auto* exit = llvm::BasicBlock::Create(module.getContext(), "exit", f);
    b.SetInsertPoint(entry);
    std::vector<llvm::Value*> arrays;
    for (int k = 0; k <= op.arity; ++k)
      arrays.push_back(
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(0), static_cast<unsigned>(k))));
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(b.getInt64(0), entry);
    std::vector<Lanes> operands;
    for (int k = 0; k < op.arity; ++k) {
      Lanes x{load_part(b, arrays[static_cast<std::size_t>(k)], op.operand, i, lanes, 0), nullptr};
      if (is_complex(op.operand)) x.imag = load_part(b, arrays[static_cast<std::size_t>(k)], op.operand, i, lanes, 1);
      operands.push_back(x);
    }
    // With 8 lanes the code goes into a block that is already whole, else to the end of one under construction.
    const bool finished = lanes == 8;
    if (finished) b.SetInsertPoint(close_loop(b, i, f->getArg(1), lanes, loop, exit));
    store(b, arrays.back(), op.result, i, lanes, op.emit(b, operands.data()));
    if (!finished) close_loop(b, i, f->getArg(1), lanes, loop, exit);
    b.SetInsertPoint(exit);
    b.CreateRetVoid();
  }

  std::optional<jit::Code> code_;
  Function function_ = nullptr;
};

}  // namespace hloom::emit
