#include "library/attributes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hloom::library {
namespace {

ffi::Attributes parsed(std::string_view text) {
  const auto attributes = parse_attributes(text);
  EXPECT_TRUE(attributes) << attributes.error().message();
  return attributes ? *attributes : ffi::Attributes();
}

template <typename T>
T value(const ffi::Attributes& attributes, std::string_view name) {
  const ffi::NamedAttribute* found = attributes.find(name);
  EXPECT_NE(found, nullptr) << name;
  const T* value = found == nullptr ? nullptr : std::get_if<T>(&found->value);
  EXPECT_NE(value, nullptr) << name;
  return value == nullptr ? T() : *value;
}

TEST(Attributes, EachForm) {
  const ffi::Attributes a = parsed(
      R"({a = 76 : ui8, b = -5 : i64, c = true, d, e = 1.5e-3 : f32, f = "x, \"y\"\0A", g = array<i64: 1, -2>, h = [1, 2.5],
          i = {j = 1 : i32, k = false}, l = dense<[3, 4]> : tensor<2xi64>, m = 0x7FC00000 : f32, n = #foo.bar<1, {2}>, o = array<i32>,
          p = ["u", "v"], q = 18446744073709551615 : ui64, r = 2 : f64, "s t" = unit, u = array<i1: true, false>})");
  EXPECT_EQ(a.integer("a"), 76);
  EXPECT_EQ(a.integer("b"), -5);
  EXPECT_EQ(a.flag("c"), true);
  EXPECT_EQ(a.flag("d"), true);
  EXPECT_EQ(a.number("e"), 1.5e-3);
  EXPECT_EQ(a.text("f"), "x, \"y\"\n");
  EXPECT_EQ(value<std::vector<std::int64_t>>(a, "g"), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(value<std::vector<double>>(a, "h"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(value<ffi::Attributes>(a, "i").flag("k"), false);
  EXPECT_EQ(value<std::vector<std::int64_t>>(a, "l"), (std::vector<std::int64_t>{3, 4}));
  EXPECT_TRUE(std::isnan(*a.number("m")));
  EXPECT_EQ(a.text("n"), "#foo.bar<1, {2}>");
  EXPECT_TRUE(value<std::vector<std::int64_t>>(a, "o").empty());
  EXPECT_EQ(value<std::vector<std::string>>(a, "p"), (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(a.integer("q"), -1);
  EXPECT_EQ(a.number("r"), 2.0);
  EXPECT_EQ(a.flag("s t"), true);
  EXPECT_EQ(value<std::vector<std::int64_t>>(a, "u"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(a.entries().size(), 18u);
}

TEST(Attributes, WhatIsNotThereOrOfAnotherType) {
  const ffi::Attributes a = parsed("{a = \"1\", b = 1.5 : f32, c = true}");
  EXPECT_EQ(a.integer("x"), std::nullopt);
  EXPECT_EQ(a.integer("a"), std::nullopt);
  EXPECT_EQ(a.integer("b"), std::nullopt);
  EXPECT_EQ(a.integer("c"), 1);
  EXPECT_EQ(a.number("c"), std::nullopt);
  EXPECT_EQ(a.text("b"), std::nullopt);
}

TEST(Attributes, DictionariesOfJson) {
  const ffi::Attributes a = parsed(R"({"a": 1, "b": {"c": [1, 2]}, "d": "e"})");
  EXPECT_EQ(a.integer("a"), 1);
  EXPECT_EQ(value<std::vector<std::int64_t>>(value<ffi::Attributes>(a, "b"), "c").size(), 2u);
  EXPECT_EQ(a.text("d"), "e");
}

TEST(Attributes, EmptyIsNone) {
  EXPECT_TRUE(parsed("").entries().empty());
  EXPECT_TRUE(parsed(" { } ").entries().empty());
}

TEST(Attributes, WrongTextIsAnErrorWithItsPlace) {
  for (const char* text : {"{", "{a", "{a =", "{a = }", "{a = 1", "{a = 1 b = 2}", "{a = 1, a = 2}", "{a = \"x}", "{a = [1, 2}", "{a = [1, \"x\"]}",
                           "{= 1}", "{a = 1} x", "a = 1", "{a = 1x2}", "{a = 99999999999999999999}", "{a = 0xZZ : f32}", "{a = array<i64 1>}"}) {
    const auto attributes = parse_attributes(text);
    ASSERT_FALSE(attributes) << text;
    EXPECT_EQ(attributes.error().code(), Code::InvalidArgument);
    EXPECT_EQ(attributes.error().message().find("backend_config, character "), 0u) << attributes.error().message();
  }
  EXPECT_FALSE(parse_attributes("{a = " + std::string(100'000, '[')));
  EXPECT_FALSE(parse_attributes("{a = " + std::string(100'000, '{')));
}

// No cut of a good text reads beyond it.
TEST(Attributes, EveryPrefixIsReadOrRefused) {
  const std::string text = R"({a = 76 : ui8, f = "x\0A", g = array<i64: 1>, l = dense<[3, 4]> : tensor<2xi64>, n = #b<1>, e = 1.5e-3 : f32})";
  for (std::size_t n = 1; n < text.size(); ++n) EXPECT_FALSE(parse_attributes(std::string(text, 0, n))) << n;
  EXPECT_TRUE(parse_attributes(text));
}

}  // namespace
}  // namespace hloom::library
