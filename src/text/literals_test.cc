// Literals: every type and rank, to the bit, and back.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "hlo/narrow_float.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

using hlo::Literal;

Literal read(std::string_view text, const Shape& shape) {
  const auto literal = parse_literal(text, shape);
  EXPECT_TRUE(literal) << literal.error().message();
  return literal ? *literal : Literal(shape);
}

std::string reprinted(std::string_view text, const Shape& shape) { return print_literal(read(text, shape)); }

template <typename T>
T scalar(std::string_view text, DType type) {
  return read(text, Shape::scalar(type)).data<T>()[0];
}

std::vector<DType> array_types() {
  std::vector<DType> types;
  for (int n = 1; n <= static_cast<int>(DType::F8E8M0FNU); ++n)
    if (is_array_type(static_cast<DType>(n))) types.push_back(static_cast<DType>(n));
  return types;
}

TEST(Literals, WrittenForms) {
  const auto a = [](DType type, std::vector<std::int64_t> dims) { return Shape::array(type, std::move(dims)); };
  struct Case {
    Shape shape;
    std::string_view text;
  };
  const Case cases[] = {{a(DType::F32, {2, 2}), "{ { 1, 2 }, { 3, 4.5 } }"},
                        {a(DType::S32, {2, 1}), "{ {7}, {8} }"},
                        {a(DType::S32, {2, 0}), "{ {}, {} }"},
                        {a(DType::S32, {0}), "{}"},
                        {a(DType::S32, {0, 2}), "{}"},
                        {a(DType::S32, {}), "-7"},
                        {a(DType::U8, {1, 2, 1, 2}), "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } } }"},
                        {a(DType::S8, {1, 1, 1, 1, 2}), "{ { /*i0=0*/ { /*i1=0*/ { /*i2=0*/ { 1, 2 } } } } }"},
                        {a(DType::S8, {1, 2, 1}), "{ { {1}, {2} } }"},
                        {a(DType::Pred, {}), "true"},
                        {a(DType::Pred, {2}), "{1, 0}"},
                        {a(DType::C64, {}), "(1.5, -0)"},
                        {a(DType::C64, {2}), "{(1, 2), (nan, -inf)}"},
                        {a(DType::S64, {2}), "{-9223372036854775808, 9223372036854775807}"},
                        {a(DType::U64, {1}), "{18446744073709551615}"},
                        {Shape::tuple({a(DType::S32, {2}), a(DType::Pred, {})}), "( {1, 2}, true )"},
                        {Shape::tuple({Shape::tuple({}), a(DType::F64, {})}), "( ( ), 1e+21 )"}};
  for (const Case& c : cases)
    EXPECT_EQ(reprinted(c.text, c.shape), c.text == "( ( ), 1e+21 )" ? "( ( ), 1e+21 )" : c.text);
}

TEST(Literals, OtherSpellings) {
  EXPECT_EQ(reprinted("{1 2,3}", Shape::array(DType::S32, {3})), "{1, 2, 3}");
  EXPECT_EQ(reprinted("{1,2,3,}", Shape::array(DType::S32, {3})), "{1, 2, 3}");
  EXPECT_EQ(reprinted("{/*a*/{1},{2}}", Shape::array(DType::S32, {2, 1})), "{ {1}, {2} }");
  EXPECT_EQ(reprinted("{true, 0}", Shape::array(DType::Pred, {2})), "{1, 0}");
  EXPECT_EQ(reprinted("1", Shape::scalar(DType::Pred)), "true");
  EXPECT_EQ(reprinted("3", Shape::scalar(DType::C64)), "(3, 0)");
  EXPECT_EQ(reprinted("(1 2)", Shape::scalar(DType::C128)), "(1, 2)");
  EXPECT_EQ(reprinted("-1", Shape::scalar(DType::U64)), "18446744073709551615");
  EXPECT_EQ(reprinted("1.", Shape::scalar(DType::F32)), "1");
}

TEST(Literals, DigitsOfFloats) {
  EXPECT_EQ(reprinted("0.1", Shape::scalar(DType::F32)), "0.1");
  EXPECT_EQ(reprinted("0.333333343", Shape::scalar(DType::F32)), "0.333333343");
  EXPECT_EQ(reprinted("3.40282347e38", Shape::scalar(DType::F32)), "3.40282347e+38");
  EXPECT_EQ(reprinted("3.39e38", Shape::scalar(DType::BF16)), "3.39e+38");
  EXPECT_EQ(reprinted("65504", Shape::scalar(DType::F16)), "65504");
  EXPECT_EQ(reprinted("1e21", Shape::scalar(DType::F64)), "1e+21");
  EXPECT_EQ(reprinted("-0", Shape::scalar(DType::F32)), "-0");
  EXPECT_EQ(reprinted("-0.0", Shape::scalar(DType::F8E4M3FN)), "-0");
}

// Decimal text rounds once to the nearest f32 or f64; ties go to even; small numbers go to denormals and zero.
TEST(Literals, Rounding) {
  EXPECT_EQ(scalar<float>("16777217", DType::F32), 16777216.0f);
  EXPECT_EQ(scalar<float>("16777217.0000001", DType::F32), 16777218.0f);
  EXPECT_EQ(scalar<float>("1.00000005960464477540", DType::F32), std::nextafter(1.0f, 2.0f));  // twice rounded: 1
  EXPECT_EQ(scalar<float>("1e-45", DType::F32), 0x1p-149f);
  EXPECT_EQ(scalar<float>("1e-60", DType::F32), 0.0f);
  EXPECT_TRUE(std::signbit(scalar<float>("-1e-60", DType::F32)));
  EXPECT_EQ(scalar<double>("4.9e-324", DType::F64), 0x1p-1074);
  EXPECT_EQ(scalar<double>("1e-400", DType::F64), 0.0);
  EXPECT_EQ(scalar<double>("100000000000000000000000", DType::F64), 1e23);
  EXPECT_EQ(scalar<std::uint16_t>("65519", DType::F16), 0x7BFF);
}

// All values of the narrow types, NaNs with their payloads, print as text that reads back to the bit.
TEST(Literals, EveryValueOfNarrowTypes) {
  for (const DType type : array_types()) {
    if (bit_width(type) > 16) continue;
    const auto count = std::int64_t{1} << bit_width(type);
    const auto width = static_cast<std::size_t>(byte_width(type));
    std::vector<std::byte> bytes;
    for (std::int64_t n = 0; n < count; ++n) {
      // Sub-byte integers are extended by their sign; floats are not.
      const int unused = 64 - bit_width(type);
      const std::int64_t value =
          is_signed(type) ? static_cast<std::int64_t>(static_cast<std::uint64_t>(n) << unused) >> unused : n;
      for (std::size_t b = 0; b < width; ++b) bytes.push_back(static_cast<std::byte>(value >> (8 * b)));
    }
    const Literal all = Literal::from_bytes(Shape::array(type, {count}), bytes);
    EXPECT_EQ(read(print_literal(all), all.shape()), all) << name(type);
  }
}

// Random bits of the wide ones, denormals, infinities and NaNs among them.
TEST(Literals, RandomBitsOfWideTypes) {
  std::mt19937_64 random(7);
  for (const DType type :
       {DType::F32, DType::F64, DType::C64, DType::C128, DType::S32, DType::U32, DType::S64, DType::U64}) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(byte_width(type)) * 20000);
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t bits = random();
      switch (random() % 8) {  // make the rare kinds less rare
        case 0: bits |= 0x7FF0'0000'7F80'0000; break;
        case 1: bits &= 0x800F'FFFF'807F'FFFF; break;
        default: break;
      }
      std::memcpy(bytes.data() + i, &bits, 8);
    }
    const Literal all = Literal::from_bytes(Shape::array(type, {200, 100}), bytes);
    EXPECT_EQ(read(print_literal(all), all.shape()), all) << name(type);
  }
}

TEST(Literals, NanPayloads) {
  EXPECT_EQ(scalar<std::uint32_t>("nan", DType::F32), 0x7FC00000u);
  EXPECT_EQ(scalar<std::uint32_t>("-nan", DType::F32), 0xFFC00000u);
  EXPECT_EQ(scalar<std::uint32_t>("nan(0x1)", DType::F32), 0x7F800001u);  // signalling: kept
  EXPECT_EQ(scalar<std::uint32_t>("-nan(0x7fffff)", DType::F32), 0xFFFFFFFFu);
  EXPECT_EQ(scalar<std::uint64_t>("nan(0xFFFFFFFFFFFFF)", DType::F64), 0x7FFFFFFFFFFFFFFFull);
  EXPECT_EQ(scalar<std::uint16_t>("nan(0x3f)", DType::BF16), 0x7FBF);
  EXPECT_EQ(scalar<std::uint8_t>("nan(0x3)", DType::F8E5M2), 0x7F);
  EXPECT_EQ(scalar<std::uint8_t>("-nan(0x7)", DType::F8E4M3FN), 0xFF);  // the only payload it has
  EXPECT_EQ(scalar<std::uint8_t>("-nan", DType::F8E4M3FNUZ), 0x80);
  EXPECT_EQ(scalar<std::uint8_t>("nan", DType::F8E8M0FNU), 0xFF);
  for (const std::string_view text :
       {"nan(0x800000)", "nan(0x0)", "nan()", "nan(1)", "nan(0x1g)", "nan(0x10000000000000)"})
    EXPECT_FALSE(parse_literal(text, Shape::scalar(DType::F32))) << text;
  EXPECT_FALSE(parse_literal("nan(0x1)", Shape::scalar(DType::F8E4M3FNUZ)));
  // Each part of a complex number has its own.
  const Literal c = read("(nan(0x1), -nan(0x2))", Shape::scalar(DType::C64));
  std::uint32_t parts[2];
  std::memcpy(parts, c.bytes().data(), sizeof parts);
  EXPECT_EQ(parts[0], 0x7F800001u);
  EXPECT_EQ(parts[1], 0xFF800002u);
}

// The least and the largest value of each type; the next one is an error.
TEST(Literals, Limits) {
  struct Limit {
    DType type;
    std::string_view least, below, most, above;
  };
  const Limit limits[] = {
      {DType::S1, "-1", "-2", "0", "1"},
      {DType::U1, "0", "-1", "1", "2"},
      {DType::S2, "-2", "-3", "1", "2"},
      {DType::U2, "0", "-1", "3", "4"},
      {DType::S4, "-8", "-9", "7", "8"},
      {DType::U4, "0", "-1", "15", "16"},
      {DType::S8, "-128", "-129", "127", "128"},
      {DType::U8, "0", "-1", "255", "256"},
      {DType::S16, "-32768", "-32769", "32767", "32768"},
      {DType::U16, "0", "-1", "65535", "65536"},
      {DType::S32, "-2147483648", "-2147483649", "2147483647", "2147483648"},
      {DType::U32, "0", "-1", "4294967295", "4294967296"},
      {DType::S64, "-9223372036854775808", "-9223372036854775809", "9223372036854775807", "9223372036854775808"},
      {DType::U64, "0", "-9223372036854775809", "18446744073709551615", "18446744073709551616"},
      {DType::Pred, "0", "-1", "1", "2"},
      {DType::F16, "-65519", "-65520", "65519", "65520"},
      {DType::BF16, "-3.39e38", "-3.40e38", "3.39e38", "3.40e38"},
      {DType::F32, "-3.4028235e38", "-3.4028236e38", "3.4028235e38", "3.4028236e38"},
      {DType::F64, "-1.797693134862315e308", "-1.8e308", "1.797693134862315e308", "1.8e308"},
      {DType::F8E5M2, "-57344", "-61440", "57344", "61440"},
      {DType::F8E4M3, "-240", "-248", "240", "248"},
      {DType::F8E3M4, "-15.5", "-15.75", "15.5", "15.75"},
      {DType::F8E4M3FN, "-448", "-465", "448", "465"},
      {DType::F8E4M3B11FNUZ, "-30", "-31", "30", "31"},
      {DType::F8E5M2FNUZ, "-57344", "-61440", "57344", "61440"},
      {DType::F8E4M3FNUZ, "-240", "-248", "240", "248"},
      {DType::F4E2M1FN, "-6", "-7", "6", "7"},
      {DType::F8E8M0FNU, "1e-38", "0", "1.7e38", "3.4e38"}};
  for (const Limit& l : limits) {
    const Shape shape = Shape::scalar(l.type);
    for (const std::string_view good : {l.least, l.most})
      EXPECT_TRUE(parse_literal(good, shape)) << name(l.type) << ' ' << good;
    for (const std::string_view bad : {l.below, l.above})
      EXPECT_FALSE(parse_literal(bad, shape)) << name(l.type) << ' ' << bad;
  }
}

TEST(Literals, TenElementsAreNotElided) {
  const auto text = [](std::int64_t count) {
    return print_literal(Literal(Shape::array(DType::S32, {count})), PrintOptions::dump());
  };
  EXPECT_EQ(text(10), "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}");
  EXPECT_EQ(text(11), "{...}");
  EXPECT_EQ(print_literal(Literal(Shape::tuple({Shape::scalar(DType::S32)})), PrintOptions::dump()), "{...}");
}

TEST(Literals, ElidedOnesAreFilledOnlyIfAsked) {
  for (const DType type : array_types()) {
    const Shape shape = Shape::array(type, {5, 7});
    EXPECT_FALSE(parse_literal("{...}", shape));
    const auto filled = parse_literal("{...}", shape, {.fill_elided = true});
    ASSERT_TRUE(filled);
    EXPECT_EQ(*filled, *parse_literal("{ ... }", shape, {.fill_elided = true}));
    EXPECT_EQ(read(print_literal(*filled), shape), *filled) << name(type);  // only values that the type has
    for (std::int64_t i = 0; i < 35; ++i) EXPECT_LE(std::fabs(hlo::element_as_double(*filled, i)), 3);
  }
  EXPECT_FALSE(parse_literal("{...}", Shape::array(DType::F32, {1ll << 40}), {.fill_elided = true}));
  EXPECT_TRUE(parse_literal("{...}", Shape::tuple({Shape::scalar(DType::F32)}), {.fill_elided = true}));
}

// A shape that claims much does not make a short text take memory.
TEST(Literals, MemoryFollowsTheText) {
  for (const std::string_view text : {"{}", "{1}", "{1, 2, 3}", "{"})
    EXPECT_FALSE(parse_literal(text, Shape::array(DType::F64, {1ll << 55}))) << text;
}

}  // namespace
}  // namespace hloom::text
