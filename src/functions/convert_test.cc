// Conversions against hlo::encode_float and decode_float, against exact arithmetic in __int128, and by rule.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "functions/evaluate.h"
#include "hlo/narrow_float.h"

namespace hloom::functions {
namespace {

using hlo::float_format;

constexpr DType kNarrow[] = {DType::BF16,       DType::F16,       DType::F8E5M2,        DType::F8E4M3,
                             DType::F8E3M4,     DType::F8E4M3FN,  DType::F8E4M3B11FNUZ, DType::F8E5M2FNUZ,
                             DType::F8E4M3FNUZ, DType::F8E8M0FNU, DType::F4E2M1FN};

std::uint64_t convert_bits(DType from, DType to, std::uint64_t x) { return evaluate_convert(from, to, {x, 0}).real; }
float to_f32(DType from, std::uint64_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(convert_bits(from, DType::F32, x)));
}
double to_f64(DType from, std::uint64_t x) { return std::bit_cast<double>(convert_bits(from, DType::F64, x)); }
std::uint64_t from_f32(DType to, float x) { return evaluate_convert(DType::F32, to, scalar_of(x)).real; }
std::uint64_t from_f64(DType to, double x) { return evaluate_convert(DType::F64, to, scalar_of(x)).real; }

template <class T>
bool same_number(T x, T y) {
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
}

TEST(Convert, DecodesEveryNarrowValue) {
  for (const DType type : kNarrow)
    for (std::uint64_t code = 0; code < 1ull << bit_width(type); ++code) {
      const double want = hlo::decode_float(float_format(type), code);
      EXPECT_TRUE(same_number(to_f64(type, code), want)) << type << " " << code;
      EXPECT_TRUE(same_number(to_f32(type, code), static_cast<float>(want))) << type << " " << code;
    }
}

// Doubles around each value of the format and around each midpoint of two, where one rounding differs from two.
TEST(Convert, EncodesAroundEveryNarrowValueOnce) {
  for (const DType type : kNarrow) {
    const auto& format = float_format(type);
    for (std::uint64_t code = 0; code < 1ull << bit_width(type); ++code) {
      const double here = hlo::decode_float(format, code), next = hlo::decode_float(format, code + 1);
      if (!std::isfinite(here)) continue;
      const double end = std::isfinite(next) ? next : here * (1 + std::ldexp(1.0, -format.mantissa_bits));
      const double middle = here + (end - here) / 2;
      for (const double base : {here, middle, end})
        for (const double x : {base, std::nextafter(base, 1e300), std::nextafter(base, -1e300), base * (1 + 0x1p-30),
                               base * (1 - 0x1p-30)}) {
          ASSERT_EQ(from_f64(type, x), hlo::encode_float(format, x)) << type << " of " << x;
          const float y = static_cast<float>(x);
          ASSERT_EQ(from_f32(type, y), hlo::encode_float(format, y)) << type << " of " << y;
        }
    }
  }
}

TEST(Convert, EncodesFloatsOfAnyBits) {
  std::mt19937_64 random(5);
  for (const DType type : kNarrow) {
    const auto& format = float_format(type);
    const auto expect = [&](std::uint64_t got, double x) {
      const std::uint64_t want = hlo::encode_float(format, x);
      const bool nan = format.has_nan() && hlo::is_nan_bits(format, want) && hlo::is_nan_bits(format, got);
      ASSERT_TRUE(nan || got == want) << type << " of " << x << ": " << got << " instead of " << want;
    };
    for (std::uint64_t i = 0; i < 1ull << 32; i += 9973) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
      expect(from_f32(type, x), x);
    }
    for (int i = 0; i < 100000; ++i) {
      const double x = std::bit_cast<double>(random());
      expect(from_f64(type, x), x);
    }
  }
}

// A 64-bit integer that a double cannot hold is still rounded once. 2^k + 1 above a midpoint tells.
TEST(Convert, RoundsIntegersOnce) {
  for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F8E5M2, DType::F8E4M3FN}) {
    const auto& format = float_format(type);
    for (int top = 2; top < 63; ++top)
      for (int extra = 0; extra < 16; ++extra)
        for (const std::int64_t low : {-1, 0, 1}) {
          // A midpoint of the format, of `top` + 1 bits, and its neighbours.
          const int places = format.mantissa_bits + 1;
          std::int64_t n = std::int64_t{1} << top;
          const std::int64_t field = extra & ((1 << format.mantissa_bits) - 1);
          if (top >= places) n |= (field << (top - places + 1)) | (std::int64_t{1} << (top - places));
          n += low;
          // What a midpoint's neighbours round to: the exact value, cut to 53 bits to odd.
          const int shift = top >= 53 ? top - 50 : 0;
          const std::int64_t cut = ((n >> shift) | ((n & ((std::int64_t{1} << shift) - 1)) != 0)) << shift;
          const double exact = static_cast<double>(cut);
          for (const std::int64_t sign : {1, -1}) {
            const std::uint64_t want = hlo::encode_float(format, static_cast<double>(sign) * exact);
            ASSERT_EQ(convert_bits(DType::S64, type, static_cast<std::uint64_t>(sign * n)), want)
                << type << " of " << sign * n;
          }
          ASSERT_EQ(convert_bits(DType::U64, type, static_cast<std::uint64_t>(n)), hlo::encode_float(format, exact))
              << type << " of " << n;
        }
  }
}

TEST(Convert, FloatsToIntegersSaturate) {
  struct Row {
    double x;
    std::int64_t s32, u8, s4, u4, s64;
  };
  const Row rows[] = {{NAN, 0, 0, 0, 0, 0},
                      {3e9, 2147483647, 255, 7, 15, 3000000000},
                      {-3e9, -2147483648, 0, -8, 0, -3000000000},
                      {-1.9, -1, 0, -1, 0, -1},
                      {0.5, 0, 0, 0, 0, 0},
                      {7.9, 7, 7, 7, 7, 7},
                      {-8.9, -8, 0, -8, 0, -8},
                      {1e30, 2147483647, 255, 7, 15, INT64_MAX},
                      {-INFINITY, INT32_MIN, 0, -8, 0, INT64_MIN}};
  for (const Row& r : rows) {
    const auto signed_of = [&](DType to) {
      const std::uint64_t bits = from_f64(to, r.x);
      return to == DType::S64   ? static_cast<std::int64_t>(bits)
             : to == DType::S32 ? static_cast<std::int32_t>(bits)
                                : std::int64_t{static_cast<std::int8_t>(bits)};
    };
    EXPECT_EQ(signed_of(DType::S32), r.s32) << r.x;
    EXPECT_EQ(signed_of(DType::S4), r.s4) << r.x;
    EXPECT_EQ(signed_of(DType::S64), r.s64) << r.x;
    EXPECT_EQ(from_f64(DType::U8, r.x), static_cast<std::uint64_t>(r.u8)) << r.x;
    EXPECT_EQ(from_f64(DType::U4, r.x), static_cast<std::uint64_t>(r.u4)) << r.x;
  }
}

TEST(Convert, IntegersKeepLowBits) {
  for (std::int64_t n = -40000; n < 40000; ++n) {
    const auto bits = static_cast<std::uint64_t>(n);
    ASSERT_EQ(static_cast<std::int8_t>(convert_bits(DType::S64, DType::S8, bits)), static_cast<std::int8_t>(n));
    const auto low = static_cast<std::int64_t>(bits & 15);
    ASSERT_EQ(convert_bits(DType::S64, DType::U4, bits), static_cast<std::uint64_t>(low));
    ASSERT_EQ(static_cast<std::int8_t>(convert_bits(DType::S64, DType::S4, bits)), low > 7 ? low - 16 : low);
  }
}

TEST(Convert, PredAndComplex) {
  EXPECT_EQ(evaluate_convert(DType::Pred, DType::C64, {1, 0}), (Scalar{0x3F800000, 0}));
  EXPECT_EQ(from_f32(DType::Pred, NAN), 1u);
  EXPECT_EQ(from_f32(DType::Pred, -0.0f), 0u);
  EXPECT_EQ(evaluate_convert(DType::C64, DType::Pred, {0, 0x3F800000}).real, 1u);
  EXPECT_EQ(evaluate_convert(DType::C64, DType::S32, {0x40600000, 0x3F800000}).real, 3u);
}

// Reduced to fields of a narrow format, a normal float is what the format's own rounding makes of it.
TEST(ReducePrecision, IsTheFormatsRoundingWhereItIsNormal) {
  for (std::uint64_t i = 0; i < 1ull << 32; i += 9973) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    for (const DType type : {DType::BF16, DType::F16, DType::F8E5M2}) {
      const auto& f = float_format(type);
      const auto got =
          value_of_scalar<float>(evaluate_reduce_precision(DType::F32, f.exponent_bits, f.mantissa_bits, scalar_of(x)));
      float want = static_cast<float>(hlo::decode_float(f, hlo::encode_float(f, x)));
      const float least = std::ldexp(1.0f, 1 - f.bias);
      // Numbers that only rounding to the denormals' coarser grid makes normal are left out.
      if (f.exponent_bits < 8 && std::fabs(x) < least && std::fabs(want) == least) continue;
      if (f.exponent_bits < 8 && std::fabs(want) < least) want = std::copysign(0.0f, x);
      ASSERT_TRUE(same_number(got, want)) << type << " of " << x << ": " << got << " instead of " << want;
    }
  }
}

}  // namespace
}  // namespace hloom::functions
