// Integers by brute force, and what floats promise to the bit: maximum, rounding, special values.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "functions/evaluate.h"

namespace hloom::functions {
namespace {

using hlo::Opcode;

std::int64_t extend(DType type, std::int64_t n) {
  const int unused = 64 - bit_width(type);
  const auto top = static_cast<std::uint64_t>(n) << unused;
  return is_signed(type) ? static_cast<std::int64_t>(top) >> unused : static_cast<std::int64_t>(top >> unused);
}

// hlo-ops 4.2 in 64-bit arithmetic, for types of up to 8 bits.
std::optional<std::int64_t> expected(Opcode opcode, DType type, std::int64_t x, std::int64_t y) {
  const int width = bit_width(type);
  const std::int64_t mask = (std::int64_t{1} << width) - 1, count = y & mask;
  switch (opcode) {
    case Opcode::Add: return x + y;
    case Opcode::Subtract: return x - y;
    case Opcode::Multiply: return x * y;
    case Opcode::Divide: return y == 0 ? -1 : x / y;
    case Opcode::Remainder: return y == 0 ? x : x % y;
    case Opcode::Maximum: return std::max(x, y);
    case Opcode::Minimum: return std::min(x, y);
    case Opcode::And: return x & y;
    case Opcode::Or: return x | y;
    case Opcode::Xor: return x ^ y;
    case Opcode::Mulhi: return (x * y) >> width;
    case Opcode::ShiftLeft: return count >= width ? 0 : x << count;
    case Opcode::ShiftRightLogical: return count >= width ? 0 : (x & mask) >> count;
    case Opcode::ShiftRightArithmetic: {
      const std::int64_t sign_filled =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(x) << (64 - width)) >> (64 - width);
      return sign_filled >> std::min<std::int64_t>(count, width - 1);
    }
    case Opcode::Power: {
      if (y < 0) return x == 1 ? 1 : 0;
      std::uint64_t product = 1;
      for (std::int64_t i = 0; i < y; ++i) product *= static_cast<std::uint64_t>(x);
      return static_cast<std::int64_t>(product);
    }
    default: return {};
  }
}

TEST(Integers, EqualBruteForce) {
  for (const DType type : {DType::S1, DType::U1, DType::S2, DType::U2, DType::S4, DType::U4, DType::S8, DType::U8})
    for (const Opcode opcode :
         {Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Divide, Opcode::Remainder, Opcode::Maximum,
          Opcode::Minimum, Opcode::And, Opcode::Or, Opcode::Xor, Opcode::Mulhi, Opcode::ShiftLeft,
          Opcode::ShiftRightLogical, Opcode::ShiftRightArithmetic, Opcode::Power})
      for (std::int64_t i = 0; i < 1 << bit_width(type); ++i)
        for (std::int64_t j = 0; j < 1 << bit_width(type); ++j) {
          const std::int64_t x = extend(type, i), y = extend(type, j);
          const auto want = static_cast<std::uint8_t>(extend(type, *expected(opcode, type, x, y)));
          const auto operand = [](std::int64_t n) { return Scalar{static_cast<std::uint8_t>(n), 0}; };
          ASSERT_EQ(evaluate_binary(opcode, type, operand(x), operand(y)).real, want)
              << opcode << " of " << type << ": " << x << ", " << y;
        }
}

TEST(Integers, UnaryEqualBruteForce) {
  for (const DType type : {DType::S1, DType::U1, DType::S2, DType::U2, DType::S4, DType::U4, DType::S8, DType::U8}) {
    const int width = bit_width(type);
    for (std::int64_t i = 0; i < 1 << width; ++i) {
      const std::int64_t x = extend(type, i);
      const auto unary = [&](Opcode o) { return evaluate_unary(o, type, {static_cast<std::uint8_t>(x), 0}).real; };
      const auto stored = [&](std::int64_t n) { return std::uint64_t{static_cast<std::uint8_t>(extend(type, n))}; };
      EXPECT_EQ(unary(Opcode::Negate), stored(-x));
      EXPECT_EQ(unary(Opcode::Not), stored(~x));
      EXPECT_EQ(unary(Opcode::Popcnt), stored(std::popcount(static_cast<std::uint64_t>(i))));
      EXPECT_EQ(unary(Opcode::CountLeadingZeros),
                stored(std::countl_zero(static_cast<std::uint64_t>(i)) - (64 - width)));
      if (!is_signed(type)) continue;
      EXPECT_EQ(unary(Opcode::Abs), stored(x < 0 ? -x : x));
      EXPECT_EQ(unary(Opcode::Sign), stored((x > 0) - (x < 0)));
    }
  }
}

TEST(Integers, WideOnesWrapAndHaveAnswersForZero) {
  const auto s64 = [](Opcode o, std::int64_t x, std::int64_t y) {
    return value_of_scalar<std::int64_t>(evaluate_binary(o, DType::S64, scalar_of(x), scalar_of(y)));
  };
  EXPECT_EQ(s64(Opcode::Divide, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(s64(Opcode::Divide, 5, 0), -1);
  EXPECT_EQ(s64(Opcode::Remainder, INT64_MIN, -1), 0);
  EXPECT_EQ(s64(Opcode::Remainder, 5, 0), 5);
  EXPECT_EQ(s64(Opcode::Power, 3, 41), static_cast<std::int64_t>(3 * 12157665459056928801ull));
  EXPECT_EQ(s64(Opcode::Power, -1, -3), 0);
  EXPECT_EQ(s64(Opcode::ShiftRightArithmetic, -5, 64), -1);
  __extension__ using Wide = __int128;
  const std::int64_t numbers[] = {
      0, 1, -1, 3, INT64_MAX, INT64_MIN, 0x123456789ABCDEF, -0x7654321FEDCBA98, 0xFFFFFFFF, -0x100000000};
  for (const std::int64_t x : numbers)
    for (const std::int64_t y : numbers) {
      EXPECT_EQ(s64(Opcode::Mulhi, x, y), static_cast<std::int64_t>((Wide{x} * y) >> 64)) << x << " " << y;
      const auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
      __extension__ using UnsignedWide = unsigned __int128;
      EXPECT_EQ(evaluate_binary(Opcode::Mulhi, DType::U64, {ux, 0}, {uy, 0}).real,
                static_cast<std::uint64_t>((UnsignedWide{ux} * uy) >> 64));
    }
}

float f32(Opcode o, float x) { return value_of_scalar<float>(evaluate_unary(o, DType::F32, scalar_of(x))); }
float f32(Opcode o, float x, float y) {
  return value_of_scalar<float>(evaluate_binary(o, DType::F32, scalar_of(x), scalar_of(y)));
}
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

TEST(Floats, MaximumPrefersNaNAndPlusZero) {
  EXPECT_TRUE(std::isnan(f32(Opcode::Maximum, NAN, 1)));
  EXPECT_TRUE(std::isnan(f32(Opcode::Maximum, 1, NAN)));
  EXPECT_TRUE(std::isnan(f32(Opcode::Minimum, -INFINITY, NAN)));
  EXPECT_EQ(bits(f32(Opcode::Maximum, -0.0f, 0.0f)), bits(0.0f));
  EXPECT_EQ(bits(f32(Opcode::Maximum, 0.0f, -0.0f)), bits(0.0f));
  EXPECT_EQ(bits(f32(Opcode::Maximum, -0.0f, -0.0f)), bits(-0.0f));
  EXPECT_EQ(bits(f32(Opcode::Minimum, 0.0f, -0.0f)), bits(-0.0f));
  EXPECT_EQ(bits(f32(Opcode::Minimum, 0.0f, 0.0f)), bits(0.0f));
  EXPECT_EQ(f32(Opcode::Maximum, -3, -2), -2);
  EXPECT_EQ(f32(Opcode::Minimum, -INFINITY, 5), -INFINITY);
}

TEST(Floats, ClampTakesTheUpperBoundLast) {
  const auto clamp = [](float low, float x, float high) {
    return value_of_scalar<float>(evaluate_clamp(DType::F32, scalar_of(low), scalar_of(x), scalar_of(high)));
  };
  EXPECT_EQ(clamp(0, 5, 3), 3);
  EXPECT_EQ(clamp(4, 0, 3), 3);
  EXPECT_EQ(clamp(1, -7, 3), 1);
  EXPECT_TRUE(std::isnan(clamp(NAN, 1, 2)));
  EXPECT_TRUE(std::isnan(clamp(0, NAN, 2)));
  EXPECT_TRUE(std::isnan(clamp(0, 1, NAN)));
}

TEST(Floats, RoundingEqualsTheCLibrary) {
  for (std::uint64_t i = 0; i < 1ull << 32; i += 4999) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    const auto expect = [&](Opcode o, float want) {
      const float got = f32(o, x);
      ASSERT_TRUE(bits(got) == bits(want) || (std::isnan(got) && std::isnan(want))) << o << " of " << x;
    };
    expect(Opcode::Floor, std::floor(x));
    expect(Opcode::Ceil, std::ceil(x));
    expect(Opcode::RoundNearestEven, std::nearbyint(x));
    expect(Opcode::RoundNearestAfz, std::round(x));
    expect(Opcode::Abs, std::fabs(x));
    expect(Opcode::Sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x);
    ASSERT_EQ(evaluate_unary(Opcode::IsFinite, DType::F32, scalar_of(x)).real, std::isfinite(x) ? 1u : 0u);
  }
  EXPECT_EQ(f32(Opcode::RoundNearestAfz, 0.49999997f), 0.0f);
  EXPECT_EQ(f32(Opcode::RoundNearestAfz, -2.5f), -3.0f);
  EXPECT_EQ(f32(Opcode::RoundNearestEven, 2.5f), 2.0f);
}

TEST(Floats, TotalOrderIsTheOrderOfKeys) {
  const std::uint32_t ordered[] = {0xFFFFFFFF, 0xFFC00000, 0xFF800000, 0xC0000000, 0x80000001, 0x80000000,
                                   0x00000000, 0x00000001, 0x40000000, 0x7F800000, 0x7FC00000, 0x7FFFFFFF};
  for (std::size_t i = 0; i < std::size(ordered); ++i)
    for (std::size_t j = 0; j < std::size(ordered); ++j) {
      const auto less = evaluate_compare(hlo::Direction::Lt, hlo::Comparison::TotalOrder, DType::F32, {ordered[i], 0},
                                         {ordered[j], 0});
      EXPECT_EQ(less.real, i < j ? 1u : 0u) << i << " " << j;
    }
}

// bf16 and f16 arithmetic is that of float, rounded once.
TEST(Floats, NarrowArithmeticRoundsOnce) {
  for (const DType type : {DType::BF16, DType::F16})
    for (std::uint64_t x = 0; x < 65536; x += 97)
      for (std::uint64_t y = 0; y < 65536; y += 101) {
        const auto wide = [&](std::uint64_t v) {
          return value_of_scalar<float>(evaluate_convert(type, DType::F32, {v, 0}));
        };
        const Scalar want = evaluate_convert(DType::F32, type, scalar_of(wide(x) * wide(y)));
        ASSERT_EQ(evaluate_binary(Opcode::Multiply, type, {x, 0}, {y, 0}), want);
      }
}

}  // namespace
}  // namespace hloom::functions
