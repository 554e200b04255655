// Loads, stores and indices. Inside a loop by lanes an index is that of lane 0 plus a constant stride for each lane,
// plus what varies at run time; the stride picks the instructions.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"

namespace hloom::emit {

using llvm::ConstantInt;
using llvm::Value;

namespace {

// One access: what is common to all its instructions.
struct Access {
  const Memory& memory;
  bool wide;            // whether some index of the memory needs 64 bits
  llvm::Type* element;  // in memory
  llvm::Align alignment;
  Value* mask;    // null: all lanes
  bool vector;    // lanes, else one element
  bool streamed = false;  // a store past the caches, if it may
};

Value* constant(Function& f, std::int64_t x) { return f.b.getInt64(static_cast<std::uint64_t>(x)); }

Value* times(Function& f, Value* x, std::int64_t factor) {
  if (factor == 1) return x;
  return f.b.CreateMul(x, llvm::ConstantInt::getSigned(x->getType(), factor));
}

Value* plus(Function& f, Value* a, Value* b) {
  if (a == nullptr) return b;
  return f.b.CreateAdd(a, b);
}

// `wide`: whether offsets need 64 bits. Sums modulo 2^32 do for indices below 2^31.
Address address_of(Function& f, const kernels::Index& index, bool wide) {
  Address a;
  for (const kernels::Index::Term& term : index.terms) {
    const Held& held = f.held(term.value);
    if (held.form == Held::Form::Varying) {
      Value* lanes = held.parts.real;
      if (!wide) lanes = f.b.CreateTrunc(lanes, vector_type(f, f.b.getInt32Ty()));
      a.offsets = plus(f, a.offsets, times(f, lanes, term.coefficient));
      continue;
    }
    a.first = plus(f, a.first, times(f, held.parts.real, term.coefficient));
    if (held.form == Held::Form::Strided) a.stride += held.stride * term.coefficient;
  }
  if (a.first == nullptr) a.first = constant(f, index.offset);
  else if (index.offset != 0) a.first = f.b.CreateAdd(a.first, constant(f, index.offset));
  return a;
}

template <class Instruction>
Instruction* annotate(const Access& access, Instruction* i) {
  if (access.memory.scope) i->setMetadata(llvm::LLVMContext::MD_alias_scope, access.memory.scope);
  if (access.memory.not_scopes) i->setMetadata(llvm::LLVMContext::MD_noalias, access.memory.not_scopes);
  if (access.memory.constant && llvm::isa<llvm::LoadInst>(i))
    i->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(i->getContext(), {}));
  return i;
}

Value* pointer_to(Function& f, const Access& access, Value* index) {
  return f.b.CreateInBoundsGEP(access.element, access.memory.pointer, index);
}

llvm::Constant* zero_of(llvm::Type* type) { return llvm::Constant::getNullValue(type); }

llvm::SmallVector<int, 64> every(int count, int from, int step) {
  llvm::SmallVector<int, 64> picked;
  for (int l = 0; l < count; ++l) picked.push_back(from + step * l);
  return picked;
}

Value* reversed(Function& f, Value* lanes) {
  return lanes ? f.b.CreateShuffleVector(lanes, every(f.lanes.count, f.lanes.count - 1, -1)) : nullptr;
}

// The lanes of `mask` at each step-th place of a vector `step` times as long, from the first; the rest false.
Value* spread(Function& f, Value* mask, int step) {
  const int count = f.lanes.count;
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(vector_type(f, f.b.getInt1Ty()));
  llvm::SmallVector<int, 128> picked;
  for (int p = 0; p < count * step; ++p) picked.push_back(p % step == 0 ? p / step : count);
  return f.b.CreateShuffleVector(mask, zero_of(mask->getType()), picked);
}

// The only lane of a constant mask, -1: it has none, or several, or is no constant.
int only_lane(Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (constant == nullptr) return -1;
  int only = -1;
  const auto count = static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements());
  for (int l = 0; l < count; ++l) {
    const llvm::Constant* lane = constant->getAggregateElement(static_cast<unsigned>(l));
    if (lane == nullptr || (!lane->isNullValue() && only >= 0)) return -1;
    if (!lane->isNullValue()) only = l;
  }
  return only;
}

Value* lane_pointer(Function& f, const Access& access, Value* pointer, int lane) {
  return f.b.CreateConstInBoundsGEP1_64(access.element, pointer, static_cast<std::uint64_t>(lane));
}

Value* load_contiguous(Function& f, const Access& access, Value* first, Value* mask, int count) {
  auto* type = llvm::FixedVectorType::get(access.element, static_cast<unsigned>(count));
  Value* pointer = pointer_to(f, access, first);
  if (mask == nullptr) return annotate(access, f.b.CreateAlignedLoad(type, pointer, access.alignment));
  if (const int lane = only_lane(mask); lane >= 0) {
    Value* one = annotate(access, f.b.CreateAlignedLoad(access.element, lane_pointer(f, access, pointer, lane), llvm::Align(1)));
    return f.b.CreateInsertElement(zero_of(type), one, static_cast<std::uint64_t>(lane));
  }
  return annotate(access, f.b.CreateMaskedLoad(type, pointer, access.alignment, mask, zero_of(type)));
}

// Vectors as wide as all that lies between, from which each stride-th element is taken. What lies behind the last
// lane may not exist, so a mask keeps it out.
Value* load_wide(Function& f, const Access& access, const Address& a) {
  const auto stride = static_cast<int>(a.stride);
  Value* wide = load_contiguous(f, access, a.first, spread(f, access.mask, stride), stride * f.lanes.count);
  return f.b.CreateShuffleVector(wide, every(f.lanes.count, 0, stride));
}

// All lanes' indices as one vector.
Value* index_vector(Function& f, const Access& access, const Address& a) {
  llvm::Type* type = access.wide ? f.b.getInt64Ty() : f.b.getInt32Ty();
  Value* lanes = splat(f, f.b.CreateTrunc(a.first, type));
  if (a.stride != 0)
    lanes = f.b.CreateAdd(lanes, f.b.CreateTrunc(counting(f, 0, a.stride), vector_type(f, type)));
  return a.offsets ? f.b.CreateAdd(lanes, a.offsets) : lanes;
}

Value* pointers_to(Function& f, const Access& access, const Address& a) {
  if (a.offsets == nullptr) {  // strides are constants that need no sum with the first index
    llvm::Type* type = access.wide ? f.b.getInt64Ty() : f.b.getInt32Ty();
    Value* lanes = f.b.CreateTrunc(counting(f, 0, a.stride), vector_type(f, type));
    return f.b.CreateInBoundsGEP(access.element, pointer_to(f, access, a.first), lanes);
  }
  return pointer_to(f, access, index_vector(f, access, a));
}

// No processor gathers elements narrower than 4 bytes. LaneLoop that do not run read element 0.
Value* load_each(Function& f, const Access& access, const Address& a) {
  Value* indices = index_vector(f, access, a);
  if (access.mask) indices = f.b.CreateSelect(access.mask, indices, zero_of(indices->getType()));
  llvm::Type* type = vector_type(f, access.element);
  Value* lanes = llvm::PoisonValue::get(type);
  for (int l = 0; l < f.lanes.count; ++l) {
    Value* pointer = pointer_to(f, access, f.b.CreateExtractElement(indices, static_cast<std::uint64_t>(l)));
    Value* one = annotate(access, f.b.CreateAlignedLoad(access.element, pointer, access.alignment));
    lanes = f.b.CreateInsertElement(lanes, one, static_cast<std::uint64_t>(l));
  }
  return access.mask ? f.b.CreateSelect(access.mask, lanes, zero_of(type)) : lanes;
}

Value* gather(Function& f, const Access& access, const Address& a) {
  llvm::Type* type = vector_type(f, access.element);
  if (access.memory.size_bytes == 0) return zero_of(type);
  if (access.element->getScalarSizeInBits() < 32) return load_each(f, access, a);
  Value* mask = access.mask ? access.mask : llvm::Constant::getAllOnesValue(vector_type(f, f.b.getInt1Ty()));
  Value* pointers = pointers_to(f, access, a);
  return annotate(access, f.b.CreateMaskedGather(type, pointers, access.alignment, mask, zero_of(type)));
}

Value* load_lanes(Function& f, const Access& access, const Address& a) {
  if (a.offsets == nullptr) {
    if (a.stride == 1) return load_contiguous(f, access, a.first, access.mask, f.lanes.count);
    if (a.stride == -1) {
      Value* lowest = f.b.CreateSub(a.first, constant(f, f.lanes.count - 1));
      return reversed(f, load_contiguous(f, access, lowest, reversed(f, access.mask), f.lanes.count));
    }
    if (a.stride >= 2 && a.stride <= 4 && f.target.has_masks) return load_wide(f, access, a);
  }
  return gather(f, access, a);
}

// One element, or zero where the scalar mask says so.
Value* load_scalar(Function& f, const Access& access, const Address& a) {
  const auto load = [&]() -> Expected<Carried> {
    return Carried{annotate(access, f.b.CreateAlignedLoad(access.element, pointer_to(f, access, a.first),
                                                          access.alignment))};
  };
  if (access.mask == nullptr) return (*load())[0];
  return (*emit_when(f, access.mask, {zero_of(access.element)}, load))[0];
}

Value* load_part(Function& f, const Access& access, const Address& a) {
  return access.vector ? load_lanes(f, access, a) : load_scalar(f, access, a);
}

// Both parts of complex elements at once: every second element of one vector.
Lanes load_pairs(Function& f, const Access& access, const Address& a) {
  const int count = f.lanes.count;
  Value* mask = access.mask;
  if (mask) {
    llvm::SmallVector<int, 128> twice;
    for (int l = 0; l < 2 * count; ++l) twice.push_back(l / 2);
    mask = f.b.CreateShuffleVector(mask, twice);
  }
  Value* both = load_contiguous(f, access, a.first, mask, 2 * count);
  return {f.b.CreateShuffleVector(both, every(count, 0, 2)), f.b.CreateShuffleVector(both, every(count, 1, 2))};
}

// In units of parts: the address of the real part.
Address doubled(Function& f, const Address& a) {
  return {times(f, a.first, 2), 2 * a.stride, a.offsets ? times(f, a.offsets, 2) : nullptr};
}

Address next(Function& f, Address a) {
  a.first = f.b.CreateAdd(a.first, constant(f, 1));
  return a;
}

Access access_to(Function& f, int argument, DType type, Value* mask, bool vector) {
  const Memory& memory = f.memories[static_cast<std::size_t>(argument)];
  const std::int64_t width = byte_width(real_type(type));
  // Bytes of several types may lie anywhere.
  const auto number = static_cast<std::size_t>(argument);
  const bool scratch = number == f.kernel.arguments.size();
  const std::int64_t alignment = scratch ? width : std::min(width, f.kernel.arguments[number].alignment);
  const bool wide = memory.size_bytes / width > INT32_MAX || f.kernel.checks_bounds;
  return {memory, wide, memory_type(f, type),
          llvm::Align(static_cast<std::uint64_t>(alignment)), mask, vector};
}

}  // namespace

namespace {

// The element in the low bits of each byte, extended as its type is stored. Only memory of users has anything else there.
Value* as_stored(Function& f, DType type, Value* loaded) {
  if (type == DType::Pred) return f.b.CreateIsNotNull(loaded);
  const int width = bit_width(type);
  if (width >= 8) return loaded;
  const auto constant_of = [&](std::uint64_t x) { return llvm::ConstantInt::get(loaded->getType(), x); };
  Value* low = f.b.CreateAnd(loaded, constant_of((1u << width) - 1));
  if (!is_signed(type)) return low;
  llvm::Constant* sign = constant_of(1u << (width - 1));
  return f.b.CreateSub(f.b.CreateXor(low, sign), sign);
}

}  // namespace

Expected<> emit_load(Function& f, const kernels::Load& load) {
  const bool vector = f.is_varying(load.result);
  Value* mask = nullptr;
  if (vector)
    mask = combined_mask(f, load.mask);
  else if (load.mask != kernels::kNoValue)
    mask = uniform(f, load.mask).real;
  const DType type = f.kernel.type(load.result);
  const Access access = access_to(f, load.argument, type, mask, vector);
  const Address a = address_of(f, load.index, access.wide);
  if (f.kernel.checks_bounds)
    emit_bounds_check(f, {"loads", static_cast<std::size_t>(load.argument), type, a, mask, vector});
  if (!is_complex(type)) {
    set(f, load.result, {as_stored(f, type, load_part(f, access, a)), nullptr}, vector);
    return {};
  }
  const Address real = doubled(f, a);
  if (vector && a.stride == 1 && a.offsets == nullptr)
    set(f, load.result, load_pairs(f, access, real), true);
  else
    set(f, load.result, {load_part(f, access, real), load_part(f, access, next(f, real))}, vector);
  return {};
}

void emit_affine(Function& f, const kernels::Affine& affine) {
  const Address a = address_of(f, affine.index, /*wide=*/true);
  const bool vector = f.is_varying(affine.result);
  if (vector && a.offsets == nullptr) {
    f.held(affine.result) = {Held::Form::Strided, {a.first, nullptr}, a.stride};
    return;
  }
  Value* value = a.first;
  if (vector) {
    value = f.b.CreateAdd(splat(f, value), a.offsets);
    if (a.stride != 0) value = f.b.CreateAdd(value, counting(f, 0, a.stride));
  }
  set(f, affine.result, {value, nullptr}, vector);
}

namespace {

// Past the caches where the address allows: instructions that store so want it aligned, and parts of two lines would
// cost more than they spare. Arguments are aligned to their elements only, and so are rows of any length.
void store_streamed(Function& f, const Access& access, Value* pointer, Value* lanes) {
  llvm::IRBuilder<>& b = f.b;
  const std::uint64_t bytes = f.function->getDataLayout().getTypeStoreSize(lanes->getType());
  const std::uint64_t piece = std::min<std::uint64_t>(std::bit_floor(bytes), 64);
  llvm::BasicBlock* past = llvm::BasicBlock::Create(b.getContext(), "past", f.function);
  llvm::BasicBlock* plain = llvm::BasicBlock::Create(b.getContext(), "plain", f.function);
  llvm::BasicBlock* stored = llvm::BasicBlock::Create(b.getContext(), "stored", f.function);
  Value* off = b.CreateAnd(b.CreatePtrToInt(pointer, b.getInt64Ty()), b.getInt64(piece - 1));
  b.CreateCondBr(b.CreateIsNull(off), past, plain);
  b.SetInsertPoint(past);
  llvm::StoreInst* store = annotate(access, b.CreateAlignedStore(lanes, pointer, llvm::Align(piece)));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
  b.CreateBr(stored);
  b.SetInsertPoint(plain);
  annotate(access, b.CreateAlignedStore(lanes, pointer, access.alignment));
  b.CreateBr(stored);
  b.SetInsertPoint(stored);
  f.streams = true;
}

void store_contiguous(Function& f, const Access& access, Value* first, Value* mask, Value* lanes) {
  Value* pointer = pointer_to(f, access, first);
  if (mask == nullptr && access.streamed)
    store_streamed(f, access, pointer, lanes);
  else if (mask == nullptr)
    annotate(access, f.b.CreateAlignedStore(lanes, pointer, access.alignment));
  else if (const int lane = only_lane(mask); lane >= 0)  // LLVM 22 stores 32 bits of what was narrowed to 8 or 16
    annotate(access, f.b.CreateAlignedStore(f.b.CreateExtractElement(lanes, static_cast<std::uint64_t>(lane)),
                                            lane_pointer(f, access, pointer, lane), llvm::Align(1)));
  else
    annotate(access, f.b.CreateMaskedStore(lanes, pointer, access.alignment, mask));
}

void store_one(Function& f, const Access& access, Value* index, Value* value) {
  annotate(access, f.b.CreateAlignedStore(value, pointer_to(f, access, index), access.alignment));
}

Value* on_stack(Function& f, Value* lanes) {
  llvm::IRBuilder<> at_entry(&f.function->getEntryBlock(), f.function->getEntryBlock().begin());
  Value* room = at_entry.CreateAlloca(lanes->getType());
  f.b.CreateStore(lanes, room);
  return room;
}

// The lanes one after the other, through the stack: a branch for each lane in line would be as many blocks.
void store_each_masked(Function& f, const Access& access, Value* indices, Value* lanes) {
  Value* index_room = on_stack(f, indices);
  Value* value_room = on_stack(f, lanes);
  Value* mask_room = on_stack(f, f.b.CreateZExt(access.mask, vector_type(f, f.b.getInt8Ty())));
  const auto at = [&](llvm::Type* type, Value* room, Value* l) {
    return f.b.CreateLoad(type, f.b.CreateInBoundsGEP(type, room, l));
  };
  const auto lane = [&](Value* l, const Carried&) -> Expected<Carried> {
    Value* runs = f.b.CreateIsNotNull(at(f.b.getInt8Ty(), mask_room, l));
    return emit_when(f, runs, {}, [&]() -> Expected<Carried> {
      store_one(f, access, at(indices->getType()->getScalarType(), index_room, l), at(access.element, value_room, l));
      return Carried();
    });
  };
  *emit_for(f, {constant(f, 0), constant(f, f.lanes.count), 1, true}, {}, lane);
}

void scatter(Function& f, const Access& access, const Address& a, Value* lanes) {
  if (access.element->getScalarSizeInBits() >= 32) {
    Value* mask = access.mask ? access.mask : llvm::Constant::getAllOnesValue(vector_type(f, f.b.getInt1Ty()));
    annotate(access, f.b.CreateMaskedScatter(lanes, pointers_to(f, access, a), access.alignment, mask));
    return;
  }
  Value* indices = index_vector(f, access, a);
  if (access.mask) return store_each_masked(f, access, indices, lanes);
  for (int l = 0; l < f.lanes.count; ++l)
    store_one(f, access, f.b.CreateExtractElement(indices, static_cast<std::uint64_t>(l)),
              f.b.CreateExtractElement(lanes, static_cast<std::uint64_t>(l)));
}

void store_part(Function& f, const Access& access, const Address& a, Value* value) {
  if (!access.vector) {
    const auto store = [&]() -> Expected<Carried> {
      store_one(f, access, a.first, value);
      return Carried();
    };
    if (access.mask)
      *emit_when(f, access.mask, {}, store);
    else
      *store();
  } else if (a.offsets == nullptr && a.stride == 1) {
    store_contiguous(f, access, a.first, access.mask, value);
  } else if (a.offsets == nullptr && a.stride == -1) {
    Value* lowest = f.b.CreateSub(a.first, constant(f, f.lanes.count - 1));
    store_contiguous(f, access, lowest, reversed(f, access.mask), reversed(f, value));
  } else {
    scatter(f, access, a, value);
  }
}

void store_pairs(Function& f, const Access& access, const Address& a, Lanes parts) {
  const int count = f.lanes.count;
  llvm::SmallVector<int, 128> zipped, twice;
  for (int l = 0; l < count; ++l) zipped.append({l, l + count}), twice.append({l, l});
  Value* mask = access.mask ? f.b.CreateShuffleVector(access.mask, twice) : nullptr;
  store_contiguous(f, access, a.first, mask, f.b.CreateShuffleVector(parts.real, parts.imag, zipped));
}

}  // namespace

Value* bytes_to_line(Function& f, const kernels::Store& store) {
  for (const kernels::Index::Term& term : store.index.terms)
    if (f.held(term.value).parts.real == nullptr || f.held(term.value).form == Held::Form::Varying) return nullptr;
  const DType type = f.kernel.type(store.value);
  const Access access = access_to(f, store.argument, type, nullptr, true);
  Address a = address_of(f, store.index, access.wide);
  if (is_complex(type)) a = doubled(f, a);
  const auto piece = static_cast<std::uint64_t>(std::min<std::int64_t>(f.lanes.count * byte_width(type), 64));
  Value* address = f.b.CreatePtrToInt(pointer_to(f, access, a.first), f.b.getInt64Ty());
  return f.b.CreateAnd(f.b.CreateNeg(address), f.b.getInt64(piece - 1));
}

Expected<> emit_store(Function& f, const kernels::Store& store) {
  const bool vector = f.lanes.count > 0;
  const DType type = f.kernel.type(store.value);
  Access access = access_to(f, store.argument, type, combined_mask(f, store.mask), vector);
  access.streamed = store.streamed;
  const Address a = address_of(f, store.index, access.wide);
  if (f.kernel.checks_bounds)
    emit_bounds_check(f, {"stores", static_cast<std::size_t>(store.argument), type, a, access.mask, vector});
  // All lanes would write one element: no planner means that.
  HLOOM_CHECK(!vector || llvm::any_of(store.index.terms, [&](const auto& t) { return f.is_varying(t.value); }));
  Lanes value = operand(f, store.value, vector);
  if (type == DType::Pred)
    value.real = f.b.CreateZExt(value.real, vector ? vector_type(f, access.element) : access.element);
  if (!is_complex(type)) {
    store_part(f, access, a, value.real);
    return {};
  }
  const Address real = doubled(f, a);
  if (vector && a.stride == 1 && a.offsets == nullptr) {
    store_pairs(f, access, real, value);
  } else {
    store_part(f, access, real, value.real);
    store_part(f, access, next(f, real), value.imag);
  }
  return {};
}

void emit_prefetch(Function& f, const kernels::Prefetch& p) {
  const Access access = access_to(f, p.argument, p.type, nullptr, /*vector=*/false);
  const Address a = address_of(f, is_complex(p.type) ? p.index * 2 : p.index, access.wide);
  constexpr int kRead = 0, kInAllCaches = 3, kData = 1;
  llvm::IRBuilder<>& b = f.b;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                    {b.CreateGEP(access.element, access.memory.pointer, a.first), b.getInt32(kRead), b.getInt32(kInAllCaches), b.getInt32(kData)});
}

}  // namespace hloom::emit
