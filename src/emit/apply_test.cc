// The law of functions/: compiled code gives the bits that CppBuilder gives, at any number of lanes.
#include "emit/apply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <span>

#include "emit/compiled_op_test.h"
#include "hlo/narrow_float.h"

namespace hloom::emit {
namespace {

constexpr unsigned kLanes[] = {1, 8, 16, 64};
constexpr unsigned kFewLanes[] = {1, 16};  // where there are very many ops

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

// --- Inputs: every pair of edges, then random bits, then random numbers of a moderate size.

std::vector<double> edges() {
  std::vector<double> e = {0.0,
                           0x1p-149,
                           0x1p-1074,
                           0x1p-126,
                           0x1p-1022,
                           0x1p-24,
                           0x1p-14,
                           0.25,
                           0.41421356,
                           0.49999997,
                           0.5,
                           0.7853981,
                           0.9,
                           1.0,
                           1.0000001,
                           1.5,
                           2.0,
                           2.5,
                           3.0,
                           3.1415927,
                           8.0,
                           88.72284,
                           104.0,
                           127.0,
                           448.0,
                           709.78,
                           745.2,
                           57344.0,
                           65519.0,
                           65520.0,
                           131071.5,
                           2147483648.0,
                           4294967296.0,
                           1e10,
                           9223372036854775808.0,
                           1e30,
                           3.4028235e38,
                           1e100,
                           1.7976931348623157e308,
                           INFINITY,
                           NAN};
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

void expect_same(const Op& op, const std::vector<std::vector<std::byte>>& operands, std::int64_t count,
                 std::span<const unsigned> lane_counts) {
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
  for (const unsigned lanes : lane_counts) {
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

void expect_same(const Op& op, std::int64_t count, std::span<const unsigned> lane_counts = kLanes) {
  std::mt19937_64 random(7);
  std::vector<std::vector<std::byte>> operands;
  for (int k = 0; k < op.arity; ++k) operands.push_back(operand_values(op, k, count, random));
  expect_same(op, operands, count, lane_counts);
}

constexpr std::int64_t kCount = 1 << 14;

constexpr Opcode kComplexUnary[] = {
    Opcode::Abs,   Opcode::Acos, Opcode::Acosh,      Opcode::Asin,     Opcode::Asinh,       Opcode::Atan,
    Opcode::Atanh, Opcode::Cbrt, Opcode::Cosh,       Opcode::Cosine,   Opcode::Exponential, Opcode::ExponentialMinusOne,
    Opcode::Imag,  Opcode::Log,  Opcode::LogPlusOne, Opcode::Logistic, Opcode::Negate,      Opcode::Real,
    Opcode::Rsqrt, Opcode::Sign, Opcode::Sine,       Opcode::Sinh,     Opcode::Sqrt,        Opcode::Tan,
    Opcode::Tanh};
constexpr Opcode kRealUnary[] = {
    Opcode::Ceil, Opcode::Erf, Opcode::Floor, Opcode::IsFinite, Opcode::RoundNearestAfz, Opcode::RoundNearestEven};
constexpr Opcode kComplexBinary[] = {Opcode::Add,   Opcode::Atan2,    Opcode::Divide, Opcode::Multiply,
                                     Opcode::Power, Opcode::Subtract, Opcode::Complex};
constexpr Opcode kRealBinary[] = {Opcode::Maximum, Opcode::Minimum, Opcode::Remainder};
constexpr Opcode kIntegerUnary[] = {Opcode::Abs, Opcode::CountLeadingZeros, Opcode::Negate, Opcode::Not, Opcode::Popcnt,
                                    Opcode::Sign};
constexpr Opcode kIntegerBinary[] = {Opcode::Add,
                                     Opcode::And,
                                     Opcode::Divide,
                                     Opcode::Maximum,
                                     Opcode::Minimum,
                                     Opcode::Mulhi,
                                     Opcode::Multiply,
                                     Opcode::Or,
                                     Opcode::Power,
                                     Opcode::Remainder,
                                     Opcode::ShiftLeft,
                                     Opcode::ShiftRightArithmetic,
                                     Opcode::ShiftRightLogical,
                                     Opcode::Subtract,
                                     Opcode::Xor};
constexpr DType kFloats[] = {DType::F32,      DType::F64,           DType::BF16,       DType::F16,        DType::F8E5M2,
                             DType::F8E4M3FN, DType::F8E4M3B11FNUZ, DType::F8E5M2FNUZ, DType::F8E4M3FNUZ, DType::F8E4M3,
                             DType::F8E3M4,   DType::F4E2M1FN,      DType::F8E8M0FNU};
constexpr DType kIntegers[] = {DType::S1, DType::S2, DType::S4, DType::S8, DType::S16, DType::S32, DType::S64,
                               DType::U1, DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64};

TEST(Apply, RealFunctionsEqualCpp) {
  for (const DType type : {DType::F32, DType::F64}) {
    for (const Opcode opcode : kRealUnary) expect_same(op_of(opcode, type), kCount);
    for (const Opcode opcode : kRealBinary) expect_same(op_of(opcode, type), kCount);
    for (const Opcode opcode : kComplexUnary) expect_same(op_of(opcode, type), kCount);
    for (const Opcode opcode : kComplexBinary)
      if (opcode != Opcode::Complex) expect_same(op_of(opcode, type), kCount);
    expect_same(op_of(Opcode::Clamp, type), kCount);
  }
}
TEST(Apply, ComplexFunctionsEqualCpp) {
  for (const DType type : {DType::C64, DType::C128}) {
    for (const Opcode opcode : kComplexUnary) expect_same(op_of(opcode, type), kCount, kFewLanes);
    for (const Opcode opcode : kComplexBinary)
      if (opcode != Opcode::Complex) expect_same(op_of(opcode, type), kCount, kFewLanes);
  }
  Op complex = op_of(Opcode::Complex, DType::F32);
  complex.result = DType::C64;
  expect_same(complex, kCount);
}
TEST(Apply, NarrowTypesEqualCpp) {
  for (const DType type : kFloats)
    for (const Opcode opcode : {Opcode::Add, Opcode::Divide, Opcode::Maximum, Opcode::Tanh})
      expect_same(op_of(opcode, type), kCount / 4);
}
TEST(Apply, IntegersEqualCpp) {
  for (const DType type : kIntegers) {
    for (const Opcode opcode : kIntegerUnary)
      if (!is_unsigned(type) || opcode == Opcode::Negate || opcode == Opcode::Not || opcode == Opcode::Popcnt)
        expect_same(op_of(opcode, type), kCount / 4);
    for (const Opcode opcode : kIntegerBinary) expect_same(op_of(opcode, type), kCount / 4);
  }
  for (const Opcode opcode : {Opcode::Add, Opcode::Multiply, Opcode::Xor, Opcode::Maximum, Opcode::Not})
    expect_same(op_of(opcode, DType::Pred), 64);
}
TEST(Apply, ComparisonsEqualCpp) {
  using hlo::Comparison;
  for (int d = 0; d < 6; ++d) {
    const auto direction = static_cast<hlo::Direction>(d);
    for (const DType type : kFloats) {
      expect_same(compare_of(direction, Comparison::Float, type), kCount / 4, kFewLanes);
      expect_same(compare_of(direction, Comparison::TotalOrder, type), kCount / 4, kFewLanes);
    }
    for (const DType type : {DType::S4, DType::S32}) expect_same(compare_of(direction, Comparison::Signed, type), 1024);
    for (const DType type : {DType::U4, DType::U32, DType::Pred})
      expect_same(compare_of(direction, Comparison::Unsigned, type), 1024);
  }
  expect_same(compare_of(hlo::Direction::Eq, Comparison::Float, DType::C64), kCount);
  expect_same(compare_of(hlo::Direction::Ne, Comparison::Float, DType::C128), kCount);
}
TEST(Apply, ConversionsEqualCpp) {
  std::vector<DType> types = {DType::S2,  DType::S8,  DType::S32,  DType::S64, DType::U4,
                              DType::U16, DType::U64, DType::Pred, DType::C64};
  types.insert(types.end(), std::begin(kFloats), std::end(kFloats));
  for (const DType from : types)
    for (const DType to : types) expect_same(convert_of(from, to), kCount / 4, kFewLanes);
}
TEST(Apply, ReducePrecisionEqualsCpp) {
  for (const DType type : kFloats)
    for (const auto& [e, m] : {std::pair{5, 10}, {4, 3}, {8, 7}, {2, 0}, {1, 4}}) {
      const auto emit = [=, e = e, m = m](llvm::IRBuilderBase& b, const Lanes* x) {
        return emit_reduce_precision(b, type, e, m, x[0]);
      };
      const auto evaluate = [=, e = e, m = m](const Scalar* x) {
        return functions::evaluate_reduce_precision(type, e, m, x[0]);
      };
      expect_same({"reduce-precision of " + std::string(name(type)), type, type, 1, emit, evaluate}, kCount / 4);
    }
}

}  // namespace
}  // namespace hloom::emit
