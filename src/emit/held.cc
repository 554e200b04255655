#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include "base/check.h"
#include "emit/function.h"

namespace hloom::emit {

using llvm::Value;

llvm::Type* memory_type(Function& f, DType type) {
  return type == DType::Pred ? f.b.getInt8Ty() : element_ir_type(f.b.getContext(), type);
}

llvm::Type* vector_type(Function& f, llvm::Type* element) {
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(f.lanes.count));
}

Value* splat(Function& f, Value* scalar) {
  return f.b.CreateVectorSplat(static_cast<unsigned>(f.lanes.count), scalar);
}

Value* counting(Function& f, std::int64_t start, std::int64_t step) {
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int l = 0; l < f.lanes.count; ++l) lanes.push_back(f.b.getInt64(static_cast<std::uint64_t>(start + step * l)));
  return llvm::ConstantVector::get(lanes);
}

Lanes uniform(Function& f, kernels::Value v) {
  const Held& held = f.held(v);
  HLOOM_CHECK(held.parts.real != nullptr && held.form == Held::Form::Uniform);
  return held.parts;
}

Lanes varying(Function& f, kernels::Value v) {
  const Held& held = f.held(v);
  const Lanes parts = held.parts;
  HLOOM_CHECK(parts.real != nullptr && f.lanes.count > 0);
  switch (held.form) {
    case Held::Form::Uniform: return {splat(f, parts.real), parts.imag ? splat(f, parts.imag) : nullptr};
    case Held::Form::Varying: return parts;
    case Held::Form::Strided: break;
  }
  return {f.b.CreateAdd(splat(f, parts.real), counting(f, 0, held.stride)), nullptr};
}

Lanes operand(Function& f, kernels::Value v, bool vector) { return vector ? varying(f, v) : uniform(f, v); }

void set(Function& f, kernels::Value v, Lanes parts, bool vector) {
  f.held(v) = {vector ? Held::Form::Varying : Held::Form::Uniform, parts, 0};
}

Value* combined_mask(Function& f, kernels::Value mask) {
  if (f.lanes.count == 0) return mask == kernels::kNoValue ? nullptr : uniform(f, mask).real;
  if (mask == kernels::kNoValue) return f.lanes.mask;
  Value* lanes = varying(f, mask).real;
  return f.lanes.mask ? f.b.CreateAnd(lanes, f.lanes.mask) : lanes;
}

void append(Carried& carried, Lanes parts) {
  carried.push_back(parts.real);
  if (parts.imag) carried.push_back(parts.imag);
}

Lanes take(const Carried& carried, std::size_t& next, DType type) {
  Lanes parts;
  parts.real = carried[next++];
  if (is_complex(type)) parts.imag = carried[next++];
  return parts;
}

}  // namespace hloom::emit
