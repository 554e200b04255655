// The law of functions/: compiled code gives the bits that CppBuilder gives, at any number of lanes.
#include "emit/ir_builder.h"

#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "functions/apply.h"
#include "functions/evaluate.h"
#include "hlo/narrow_float.h"
#include "jit/code.h"
#include "jit/compile_object.h"

namespace hloom::emit {
namespace {

using functions::Element;
using functions::Scalar;
using hlo::Opcode;
using llvm::Value;

constexpr unsigned kLanes[] = {1, 8, 16, 64};

/// An elementwise op as both builders see it. `operand` is the type of all operands.
struct Op {
  std::string name;
  DType operand, result;
  int arity;
  std::function<Element<IrBuilder>(IrBuilder&, const Element<IrBuilder>*)> emit;
  std::function<Scalar(const Scalar*)> evaluate;
};

DType result_of(Opcode opcode, DType type) {
  if (opcode == Opcode::IsFinite) return DType::Pred;
  const bool gives_real = opcode == Opcode::Abs || opcode == Opcode::Real || opcode == Opcode::Imag;
  return gives_real ? real_type(type) : type;
}

Op op_of(Opcode opcode, DType type) {
  Op op{std::string(hlo::name(opcode)) + " of " + std::string(name(type)), type, result_of(opcode, type),
        hlo::arity(opcode), {}, {}};
  if (op.arity == 1) {
    op.emit = [=](IrBuilder& b, const auto* x) { return functions::apply_unary(b, opcode, type, x[0]); };
    op.evaluate = [=](const Scalar* x) { return functions::evaluate_unary(opcode, type, x[0]); };
  } else if (opcode == Opcode::Clamp) {
    op.emit = [=](IrBuilder& b, const auto* x) { return functions::apply_clamp(b, type, x[0], x[1], x[2]); };
    op.evaluate = [=](const Scalar* x) { return functions::evaluate_clamp(type, x[0], x[1], x[2]); };
  } else {
    op.emit = [=](IrBuilder& b, const auto* x) { return functions::apply_binary(b, opcode, type, x[0], x[1]); };
    op.evaluate = [=](const Scalar* x) { return functions::evaluate_binary(opcode, type, x[0], x[1]); };
  }
  return op;
}

Op convert_of(DType from, DType to) {
  return {"convert of " + std::string(name(from)) + " to " + std::string(name(to)),
          from,
          to,
          1,
          [=](IrBuilder& b, const auto* x) { return functions::apply_convert(b, from, to, x[0]); },
          [=](const Scalar* x) { return functions::evaluate_convert(from, to, x[0]); }};
}

Op compare_of(hlo::Direction direction, hlo::Comparison comparison, DType type) {
  return {"compare of " + std::string(name(type)),
          type,
          DType::Pred,
          2,
          [=](IrBuilder& b, const auto* x) {
            return functions::apply_compare(b, direction, comparison, type, x[0], x[1]);
          },
          [=](const Scalar* x) { return functions::evaluate_compare(direction, comparison, type, x[0], x[1]); }};
}

// --- Arrays of elements: parts one after the other, each in byte_width(part) bytes.

std::int64_t part_bytes(DType type) { return byte_width(real_type(type)); }

Scalar load(const std::vector<std::byte>& a, DType type, std::int64_t i) {
  const auto size = static_cast<std::size_t>(part_bytes(type));
  const std::size_t parts = is_complex(type) ? 2 : 1, at = static_cast<std::size_t>(i) * size * parts;
  Scalar x;
  std::memcpy(&x.real, &a[at], size);
  if (parts == 2) std::memcpy(&x.imag, &a[at + size], size);
  return x;
}

// --- Code: void f(void* const* arrays, i64 n) for n a multiple of the lanes; arrays: operands, then the result.

class Compiled {
 public:
  Compiled(const Op& op, unsigned lanes, bool branches = true) {
    static const std::unique_ptr<llvm::TargetMachine> machine = *jit::make_target_machine();
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    build(module, op, lanes, branches);
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
  static Value* load_part(llvm::IRBuilder<>& b, Value* array, DType type, Value* i, unsigned lanes, unsigned part) {
    llvm::Type* element = element_type(b, real_type(type));
    const unsigned parts = is_complex(type) ? 2 : 1;
    Value* first = b.CreateGEP(element, array, b.CreateMul(i, b.getInt64(parts)));
    Value* x = nullptr;
    if (lanes == 1 || parts == 1) {
      llvm::Type* all = lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
      x = b.CreateAlignedLoad(all, b.CreateGEP(element, first, b.getInt64(part)), llvm::Align(1));
    } else {
      Value* both = b.CreateAlignedLoad(llvm::FixedVectorType::get(element, 2 * lanes), first, llvm::Align(1));
      llvm::SmallVector<int> picks;
      for (unsigned l = 0; l < lanes; ++l) picks.push_back(static_cast<int>(2 * l + part));
      x = b.CreateShuffleVector(both, picks);
    }
    return type == DType::Pred ? b.CreateIsNotNull(x) : x;
  }
  static void store(llvm::IRBuilder<>& b, Value* array, DType type, Value* i, unsigned lanes,
                    const Element<IrBuilder>& y) {
    llvm::Type* element = element_type(b, real_type(type));
    const unsigned parts = is_complex(type) ? 2 : 1;
    for (unsigned l = 0; l < lanes; ++l)
      for (unsigned part = 0; part < parts; ++part) {
        Value* x = part == 0 ? y.real : y.imag;
        if (lanes > 1) x = b.CreateExtractElement(x, l);
        if (type == DType::Pred) x = b.CreateZExt(x, element);
        Value* at = b.CreateAdd(b.CreateMul(b.CreateAdd(i, b.getInt64(l)), b.getInt64(parts)), b.getInt64(part));
        b.CreateStore(x, b.CreateGEP(element, array, at));
      }
  }
  static void build(llvm::Module& module, const Op& op, unsigned lanes, bool branches) {
    llvm::IRBuilder<> b(module.getContext());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty()}, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    auto* entry = llvm::BasicBlock::Create(module.getContext(), "entry", f);
    auto* loop = llvm::BasicBlock::Create(module.getContext(), "loop", f);
    auto* exit = llvm::BasicBlock::Create(module.getContext(), "exit", f);
    b.SetInsertPoint(entry);
    std::vector<Value*> arrays;
    for (int k = 0; k <= op.arity; ++k)
      arrays.push_back(b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(0), static_cast<unsigned>(k))));
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(b.getInt64(0), entry);
    std::vector<Element<IrBuilder>> operands;
    for (int k = 0; k < op.arity; ++k) {
      Element<IrBuilder> x{load_part(b, arrays[static_cast<std::size_t>(k)], op.operand, i, lanes, 0), nullptr};
      if (is_complex(op.operand)) x.imag = load_part(b, arrays[static_cast<std::size_t>(k)], op.operand, i, lanes, 1);
      operands.push_back(x);
    }
    Element<IrBuilder> y;
    {
      IrBuilder builder(b, lanes, branches);
      y = op.emit(builder, operands.data());
    }
    store(b, arrays.back(), op.result, i, lanes, y);
    Value* next = b.CreateAdd(i, b.getInt64(lanes));
    i->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpULT(next, f->getArg(1)), loop, exit);
    b.SetInsertPoint(exit);
    b.CreateRetVoid();
  }

  std::optional<jit::Code> code_;
  Function function_ = nullptr;
};

// --- Inputs: every pair of edges, then random bits, then random numbers of a moderate size.

std::vector<double> edges() {
  std::vector<double> e = {0.0, 0x1p-149, 0x1p-1074, 0x1p-126, 0x1p-1022, 0x1p-24, 0x1p-14, 0.25, 0.41421356, 0.49999997,
                           0.5, 0.7853981, 0.9, 1.0, 1.0000001, 1.5, 2.0, 2.5, 3.0, 3.1415927, 8.0, 88.72284, 104.0,
                           127.0, 448.0, 709.78, 745.2, 57344.0, 65519.0, 65520.0, 131071.5, 2147483648.0, 4294967296.0,
                           1e10, 9223372036854775808.0, 1e30, 3.4028235e38, 1e100, 1.7976931348623157e308, INFINITY, NAN};
  for (std::size_t i = 0, n = e.size(); i < n; ++i) e.push_back(-e[i]);
  return e;
}

void store_real(std::byte* to, DType part, double x) {
  if (part == DType::F32) {
    const float narrow = static_cast<float>(x);
    std::memcpy(to, &narrow, 4);
  } else if (is_floating(part)) {
    const std::uint64_t bits = hlo::encode_float(hlo::float_format(part), x);
    std::memcpy(to, &bits, static_cast<std::size_t>(byte_width(part)));
  } else {
    const auto n = static_cast<std::int64_t>(std::fmax(-9e18, std::fmin(9e18, std::isnan(x) ? 7 : x)));
    std::memcpy(to, &n, static_cast<std::size_t>(byte_width(part)));
  }
}

// Brings the bytes of an element into the storage its type has.
void normalise(std::byte* at, DType part) {
  const int width = bit_width(part);
  if (width >= 8) return;
  const auto low = static_cast<std::uint8_t>(std::to_integer<unsigned>(*at) & ((1u << width) - 1u));
  const bool negative = is_signed(part) && ((low >> (width - 1)) & 1) != 0;
  *at = std::byte(negative ? static_cast<std::uint8_t>(low | (0xFFu << width)) : low);
}

// Operand k of n: the first |edges|^2 elements run over pairs.
std::vector<std::byte> operand_values(const Op& op, int k, std::int64_t count, std::mt19937_64& random) {
  const DType part = real_type(op.operand);
  const std::int64_t parts = is_complex(op.operand) ? 2 : 1, size = byte_width(part);
  static const std::vector<double> e = edges();
  const auto num_edges = static_cast<std::int64_t>(e.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * parts * size));
  std::normal_distribution<double> moderate(0, 20);
  for (std::int64_t i = 0; i < count * parts; ++i) {
    std::byte* at = &bytes[static_cast<std::size_t>(i * size)];
    // The operands and parts of an element are digits of a number in base |edges|.
    std::int64_t digit = i / parts;
    for (std::int64_t d = 0; d < k * parts + i % parts; ++d) digit /= num_edges;
    const std::uint64_t bits = random();
    if (i / parts < num_edges * num_edges)
      store_real(at, part, e[static_cast<std::size_t>(digit % num_edges)]);
    else if (random() % 2 == 0)
      std::memcpy(at, &bits, static_cast<std::size_t>(size));
    else
      store_real(at, part, moderate(random));
    normalise(at, part);
  }
  return bytes;
}

bool is_nan_part(DType part, std::uint64_t bits) {
  return is_floating(part) && hlo::is_nan_bits(hlo::float_format(part), bits);
}
bool same(DType type, Scalar a, Scalar b) {
  const DType part = real_type(type);
  const auto same_part = [&](std::uint64_t x, std::uint64_t y) {
    return x == y || (is_nan_part(part, x) && is_nan_part(part, y));
  };
  return same_part(a.real, b.real) && (!is_complex(type) || same_part(a.imag, b.imag));
}

void expect_same(const Op& op, const std::vector<std::vector<std::byte>>& operands, std::int64_t count) {
  std::vector<Scalar> expected;
  for (std::int64_t i = 0; i < count; ++i) {
    Scalar x[3];
    for (int k = 0; k < op.arity; ++k) x[k] = load(operands[static_cast<std::size_t>(k)], op.operand, i);
    expected.push_back(op.evaluate(x));
  }
  const std::int64_t parts = is_complex(op.result) ? 2 : 1;
  std::vector<std::byte> result(static_cast<std::size_t>(count * parts * part_bytes(op.result)));
  std::vector<void*> arrays;
  for (const auto& o : operands) arrays.push_back(const_cast<std::byte*>(o.data()));
  arrays.push_back(result.data());
  for (const unsigned lanes : kLanes) {
    const Compiled code(op, lanes);
    std::fill(result.begin(), result.end(), std::byte{0});
    code(arrays.data(), count);
    for (std::int64_t i = 0; i < count; ++i) {
      const Scalar got = load(result, op.result, i);
      if (same(op.result, got, expected[static_cast<std::size_t>(i)])) continue;
      const Scalar x = load(operands[0], op.operand, i), y = load(operands.back(), op.operand, i);
      FAIL() << op.name << " at " << lanes << " lanes, element " << i << std::hex << ": of " << x.real << "," << x.imag
             << " and " << y.real << "," << y.imag << " got " << got.real << "," << got.imag << ", C++ says "
             << expected[static_cast<std::size_t>(i)].real << "," << expected[static_cast<std::size_t>(i)].imag;
    }
  }
}

void expect_same(const Op& op, std::int64_t count) {
  std::mt19937_64 random(7);
  std::vector<std::vector<std::byte>> operands;
  for (int k = 0; k < op.arity; ++k) operands.push_back(operand_values(op, k, count, random));
  expect_same(op, operands, count);
}

constexpr std::int64_t kCount = 1 << 14;

constexpr Opcode kRealUnary[] = {
    Opcode::Abs, Opcode::Acos, Opcode::Acosh, Opcode::Asin, Opcode::Asinh, Opcode::Atan, Opcode::Atanh, Opcode::Cbrt,
    Opcode::Ceil, Opcode::Cosh, Opcode::Cosine, Opcode::Erf, Opcode::Exponential, Opcode::ExponentialMinusOne,
    Opcode::Floor, Opcode::IsFinite, Opcode::Log, Opcode::LogPlusOne, Opcode::Logistic, Opcode::Negate,
    Opcode::RoundNearestAfz, Opcode::RoundNearestEven, Opcode::Rsqrt, Opcode::Sign, Opcode::Sine, Opcode::Sinh,
    Opcode::Sqrt, Opcode::Tan, Opcode::Tanh};
constexpr Opcode kRealBinary[] = {Opcode::Add, Opcode::Atan2, Opcode::Divide, Opcode::Maximum, Opcode::Minimum,
                                  Opcode::Multiply, Opcode::Power, Opcode::Remainder, Opcode::Subtract};
constexpr DType kFloats[] = {DType::F32, DType::F64, DType::BF16, DType::F16, DType::F8E5M2, DType::F8E4M3FN,
                             DType::F8E4M3B11FNUZ, DType::F8E5M2FNUZ, DType::F8E4M3FNUZ, DType::F8E4M3, DType::F8E3M4,
                             DType::F4E2M1FN, DType::F8E8M0FNU};
constexpr DType kIntegers[] = {DType::S2, DType::S4, DType::S8, DType::S16, DType::S32, DType::S64,
                               DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64};

TEST(IrBuilder, UnaryFunctionsEqualCpp) {
  for (const DType type : {DType::F32, DType::F64})
    for (const Opcode opcode : kRealUnary) expect_same(op_of(opcode, type), kCount);
}
TEST(IrBuilder, BinaryFunctionsEqualCpp) {
  for (const DType type : {DType::F32, DType::F64})
    for (const Opcode opcode : kRealBinary) expect_same(op_of(opcode, type), kCount);
}
TEST(IrBuilder, NarrowTypesEqualCpp) {
  for (const DType type : {DType::BF16, DType::F16, DType::F8E4M3FN, DType::F4E2M1FN})
    for (const Opcode opcode : {Opcode::Add, Opcode::Divide, Opcode::Maximum, Opcode::Tanh})
      expect_same(op_of(opcode, type), kCount);
}
TEST(IrBuilder, IntegersEqualCpp) {
  for (const DType type : kIntegers) {
    for (const Opcode opcode : {Opcode::Abs, Opcode::Negate, Opcode::Not, Opcode::Popcnt, Opcode::CountLeadingZeros, Opcode::Sign})
      if (!(is_unsigned(type) && (opcode == Opcode::Abs || opcode == Opcode::Sign))) expect_same(op_of(opcode, type), kCount);
    for (const Opcode opcode : {Opcode::Divide, Opcode::Remainder, Opcode::Power, Opcode::Mulhi, Opcode::Maximum, Opcode::ShiftLeft,
                                Opcode::ShiftRightLogical, Opcode::ShiftRightArithmetic, Opcode::Multiply, Opcode::Clamp})
      expect_same(op_of(opcode, type), kCount);
  }
}
TEST(IrBuilder, ConversionsEqualCpp) {
  std::vector<DType> types(std::begin(kFloats), std::end(kFloats));
  types.insert(types.end(), std::begin(kIntegers), std::end(kIntegers));
  types.push_back(DType::Pred);
  types.push_back(DType::C64);
  for (const DType from : types)
    for (const DType to : types) expect_same(convert_of(from, to), kCount / 4);
}

}  // namespace
}  // namespace hloom::emit
