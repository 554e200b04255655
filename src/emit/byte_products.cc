// Four products of bytes in each 32 bits: the processor's instruction, a register at a time, or shifts and multiplications.
#include <llvm/IR/IntrinsicsX86.h>

#include "emit/function.h"

namespace hloom::emit {

using llvm::Value;

namespace {

Value* by_shifts(llvm::IRBuilder<>& b, Value* unsigned_bytes, Value* signed_bytes, Value* sum) {
  llvm::Type* type = sum->getType();
  for (std::uint64_t byte = 0; byte < 4; ++byte) {
    Value* u = b.CreateAnd(b.CreateLShr(unsigned_bytes, 8 * byte), llvm::ConstantInt::get(type, 255));
    Value* s = b.CreateAShr(b.CreateShl(signed_bytes, 24 - 8 * byte), 24);
    sum = b.CreateAdd(sum, b.CreateMul(u, s));
  }
  return sum;
}

// Lanes of a register that the instruction takes of a vector of so many; 0: it takes none.
unsigned register_lanes(const Function& f, unsigned lanes) {
  if (!f.target.has_byte_products) return 0;
  for (const unsigned n : {16U, 8U, 4U})
    if (4 * n <= static_cast<unsigned>(f.target.vector_bytes) && lanes % n == 0) return n;
  return 0;
}

llvm::Intrinsic::ID intrinsic_of(unsigned lanes) {
  if (lanes == 16) return llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  return lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256 : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
}

Value* piece(llvm::IRBuilder<>& b, Value* vector, unsigned first, unsigned count) {
  llvm::SmallVector<int, 16> lanes;
  for (unsigned l = 0; l < count; ++l) lanes.push_back(static_cast<int>(first + l));
  return b.CreateShuffleVector(vector, lanes);
}

Value* joined(llvm::IRBuilder<>& b, Value* first, Value* second) {
  const auto count = [](Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); };
  const unsigned have = count(first), more = count(second);
  llvm::SmallVector<int, 64> lanes;
  for (unsigned l = 0; l < have + more; ++l) lanes.push_back(static_cast<int>(l));
  if (have == more) return b.CreateShuffleVector(first, second, lanes);
  // Both sides of a shuffle have one type.
  llvm::SmallVector<int, 64> widened(have, -1);
  for (unsigned l = 0; l < more; ++l) widened[l] = static_cast<int>(l);
  return b.CreateShuffleVector(first, b.CreateShuffleVector(second, widened), lanes);
}

}  // namespace

Value* emit_byte_products(Function& f, Value* a, Value* b, Value* c) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(c->getType());
  const unsigned lanes = vector == nullptr ? 1 : vector->getNumElements(), each = register_lanes(f, lanes);
  if (each == 0) return by_shifts(f.b, a, b, c);
  llvm::Type* bytes = llvm::FixedVectorType::get(f.b.getInt8Ty(), 4 * each);
  Value* result = nullptr;
  for (unsigned first = 0; first < lanes; first += each) {
    const auto part = [&](Value* v) { return each == lanes ? v : piece(f.b, v, first, each); };
    Value* sum = f.b.CreateIntrinsic(intrinsic_of(each), {part(c), f.b.CreateBitCast(part(a), bytes), f.b.CreateBitCast(part(b), bytes)});
    result = result == nullptr ? sum : joined(f.b, result, sum);
  }
  return result;
}

}  // namespace hloom::emit
