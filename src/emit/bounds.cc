// Accesses that are looked at before they are made. What is wrong is reported by a call out of line, and nothing of it
// is done: the kernel's results are lost anyhow.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>

#include <limits>
#include <sstream>

#include "emit/function.h"
#include "emit/symbol_name.h"

namespace hloom::emit {

using llvm::BasicBlock;
using llvm::Value;

namespace {

// Whether any element lies outside, and one that does.
struct Outside {
  Value* any = nullptr;
  Value* element = nullptr;
};

Value* constant(Function& f, std::int64_t x) { return f.b.getInt64(static_cast<std::uint64_t>(x)); }

Outside one_outside(Function& f, const CheckedAccess& access, std::int64_t count) {
  Value* any = f.b.CreateICmpUGE(access.address.first, constant(f, count));
  if (access.mask) any = f.b.CreateAnd(any, access.mask);
  return {any, access.address.first};
}

// All lanes run and lie one after the other: the ends tell.
Outside ends_outside(Function& f, const Address& a, std::int64_t count) {
  Value* last = f.b.CreateAdd(a.first, constant(f, a.stride * (f.lanes.count - 1)));
  Value* lowest = a.stride < 0 ? last : a.first;
  Value* highest = a.stride < 0 ? a.first : last;
  Value* below = f.b.CreateICmpSLT(lowest, constant(f, 0));
  Value* above = f.b.CreateICmpSGE(highest, constant(f, count));
  return {f.b.CreateOr(below, above), f.b.CreateSelect(below, lowest, highest)};
}

Outside lanes_outside(Function& f, const CheckedAccess& access, std::int64_t count) {
  const Address& a = access.address;
  if (access.mask == nullptr && a.offsets == nullptr) return ends_outside(f, a, count);
  Value* elements = f.b.CreateAdd(splat(f, a.first), counting(f, 0, a.stride));
  if (a.offsets) elements = f.b.CreateAdd(elements, a.offsets);
  Value* outside = f.b.CreateICmpUGE(elements, splat(f, constant(f, count)));
  if (access.mask) outside = f.b.CreateAnd(outside, access.mask);
  Value* none = splat(f, constant(f, std::numeric_limits<std::int64_t>::max()));
  return {f.b.CreateOrReduce(outside), f.b.CreateIntMinReduce(f.b.CreateSelect(outside, elements, none), true)};
}

// "stores to y, 1000 elements of f32 (argument 2)"
std::string words(const Function& f, const CheckedAccess& access, std::int64_t count) {
  const bool scratch = access.argument == f.kernel.arguments.size();
  std::ostringstream text;
  text << access.what << (access.what == "loads" ? " from " : " to ")
       << (scratch ? "scratch" : f.kernel.arguments[access.argument].name) << ", " << count << " elements of "
       << name(access.type);
  if (!scratch) text << " (argument " << access.argument << ")";
  return std::move(text).str();
}

void emit_report(Function& f, const std::string& text, Value* element) {
  llvm::IRBuilder<>& b = f.b;
  llvm::Type* types[] = {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty(), b.getInt64Ty()};
  auto* signature = llvm::FunctionType::get(b.getVoidTy(), types, false);
  b.CreateCall(f.function->getParent()->getOrInsertFunction(kReportOutside, signature),
               {f.status, b.CreateGlobalString(text), constant(f, static_cast<std::int64_t>(text.size())), f.begin,
                element});
}

}  // namespace

void emit_bounds_check(Function& f, const CheckedAccess& access) {
  const std::int64_t count = f.memories[access.argument].size_bytes / byte_width(access.type);
  const Outside outside = access.vector ? lanes_outside(f, access, count) : one_outside(f, access, count);
  llvm::IRBuilder<>& b = f.b;
  BasicBlock* report = BasicBlock::Create(b.getContext(), "outside", f.function);
  BasicBlock* inside = BasicBlock::Create(b.getContext(), "inside", f.function);
  b.CreateCondBr(outside.any, report, inside);
  b.SetInsertPoint(report);
  emit_report(f, words(f, access, count), outside.element);
  b.CreateBr(f.done);
  b.SetInsertPoint(inside);
}

}  // namespace hloom::emit
