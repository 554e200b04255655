// Comparing against what the tolerances promise, and values against the arrays that stand for them.

#include "arrays/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "arrays/array.h"
#include "arrays/conformance.h"
#include "arrays/corpus_folder.h"

namespace hloom::arrays {
namespace {

using hlo::Literal;
using testing::HasSubstr;

Literal f32(const std::vector<float>& x) {
  Literal literal(Shape::array(DType::F32, {static_cast<std::int64_t>(x.size())}));
  std::copy(x.begin(), x.end(), literal.mutable_data<float>().begin());
  return literal;
}

bool agree(float got, float want, const Tolerance& t) { return !compare(f32({got}), f32({want}), t); }

TEST(Compare, ByEachKind) {
  const float next = std::nextafter(1.0f, 2.0f), nan = NAN, other_nan = std::bit_cast<float>(0x7FC00001u);
  EXPECT_FALSE(agree(nan, other_nan, Tolerance::bits()));
  EXPECT_TRUE(agree(nan, other_nan, Tolerance::exact()));
  EXPECT_FALSE(agree(nan, 1, Tolerance::close(1, 1)));
  EXPECT_FALSE(agree(0.0f, -0.0f, Tolerance::exact()));
  EXPECT_TRUE(agree(0.0f, -0.0f, Tolerance::equal()));
  EXPECT_TRUE(agree(0.0f, -0.0f, Tolerance::close(0, 0)));
  EXPECT_FALSE(agree(0.0f, -0.0f, Tolerance::within_ulp(4)));
  EXPECT_FALSE(agree(1, next, Tolerance::equal()));
  EXPECT_TRUE(agree(next, 1, Tolerance::within_ulp(1)));
  EXPECT_FALSE(agree(std::nextafter(next, 2.0f), 1, Tolerance::within_ulp(1)));
  EXPECT_TRUE(agree(0x1p-149f, 0x1p-148f, Tolerance::within_ulp(1)));
  EXPECT_FALSE(agree(INFINITY, 3e38f, Tolerance::close(1, 1e38)));
  EXPECT_TRUE(agree(INFINITY, INFINITY, Tolerance::close(0, 0)));
  EXPECT_TRUE(agree(1.5f, 1, Tolerance::close(0.25, 0.25)));
  EXPECT_FALSE(agree(1.5f, 1, Tolerance::close(0.25, 0.24)));
  EXPECT_TRUE(agree(1, 2, Tolerance::none()));
  Tolerance absolute = Tolerance::within_ulp(1);
  absolute.abs = 0.5;
  EXPECT_TRUE(agree(1.5f, 1, absolute));
  EXPECT_FALSE(agree(1.6f, 1, absolute));
}

TEST(Compare, NamesTheFirstAndTheWorst) {
  Literal got(Shape::array(DType::S32, {2, 3})), want = got;
  got.mutable_data<std::int32_t>()[1] = 1;
  got.mutable_data<std::int32_t>()[5] = -7;
  std::ostringstream out;
  out << *compare(got, want, Tolerance::exact());
  EXPECT_EQ(out.str(),
            "2 of 6 elements differ; first at [0,1]: 1 instead of 0; worst at [1,2]: -7 instead of 0 (7 apart)");
  EXPECT_THAT(*compare_results({&got, 1}, std::vector<Literal>{f32({1})}, std::vector{Tolerance::exact()}),
              HasSubstr("result 0: s32[2,3] instead of f32[1]"));
  EXPECT_EQ(*compare_results({}, {&want, 1}, std::vector{Tolerance::exact()}), "0 results instead of 1");
}

TEST(Arrays, StandForValuesOfEveryType) {
  for (int t = 1; t <= static_cast<int>(DType::F8E8M0FNU); ++t) {
    const auto type = static_cast<DType>(t);
    if (!is_array_type(type) || type == DType::S1 || type == DType::U1) continue;
    EXPECT_EQ(dtype_of_numpy_name(numpy_name(type)), type);
    Literal literal(Shape::array(type, {256}));
    for (std::size_t i = 0; i < 256; ++i) {
      const int unused = std::max(0, 8 - bit_width(type));
      auto byte = static_cast<std::uint8_t>(static_cast<std::uint8_t>(i << unused) >> unused);
      if (is_signed(type)) byte = static_cast<std::uint8_t>(static_cast<std::int8_t>(i << unused) >> unused);
      literal.mutable_bytes()[i * static_cast<std::size_t>(byte_width(type))] = std::byte{byte};
    }
    const auto back = to_literal(to_array(literal), literal.shape(), "x");
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(*back, literal);
  }
}

TEST(Arrays, AreRefusedByNameWhereTheyDoNotFit) {
  const Array bytes{DType::U8, {2}, {std::byte{1}, std::byte{0x1F}}};
  const auto error = [&](const Shape& shape) {
    const auto literal = to_literal(bytes, shape, "arg0");
    return literal ? "no error" : literal.error().message();
  };
  EXPECT_THAT(error(Shape::array(DType::U4, {2})), HasSubstr("arg0: element 1 is the byte 31, which is no u4"));
  EXPECT_THAT(error(Shape::array(DType::Pred, {2})), HasSubstr("which is no pred"));
  EXPECT_THAT(error(Shape::array(DType::U8, {3})), HasSubstr("has dimensions [2], expected [3]"));
  EXPECT_THAT(error(Shape::array(DType::BF16, {2})), HasSubstr("holds u8, expected u16 with the bits of bf16"));
  EXPECT_THAT(error(Shape::token()), HasSubstr("cannot stand for token"));
  EXPECT_EQ(error(Shape::array(DType::F8E5M2, {2})), "no error");
}

TEST(Folders, AreReadOrNamed) {
  EXPECT_THAT(read_corpus_folder("/nowhere").error().message(), HasSubstr("/nowhere/meta.json"));
  EXPECT_THAT(read_conformance("/nowhere", "add").error().message(), HasSubstr("/nowhere/add.cases.hlo"));
  const std::string folder = HLOOM_SOURCE_DIR "/tests/programs/r05-gpt-decode-step";
  ASSERT_TRUE(is_corpus_folder(folder));
  const auto program = read_corpus_folder(folder);
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->inputs.size(), 1u);
  EXPECT_EQ(program->expected[0].size(), program->tolerances.size());
}

}  // namespace
}  // namespace hloom::arrays
