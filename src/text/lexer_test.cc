// Tokens: comments, names, numbers, strings, places.
#include <gtest/gtest.h>

#include <string>

#include "text/cursor.h"
#include "text/outline.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

// A cursor over a text, with its errors.
struct Reading {
  explicit Reading(std::string_view t) : text(t), errors(text, options), cursor(text, errors, options) {}
  std::string message() const { return errors.empty() ? "" : errors.to_error().message(); }

  std::string text;
  ParseOptions options;
  ErrorList errors;
  Cursor cursor;
};

TEST(Lexer, SkipsSpacesAndComments) {
  for (const std::string_view text : {"x", "  x", "\t\r\n x", "/* a */x", "/*a*/ // b\n x", "// b\r x", "/**/x",
                                      "/***/x", "/* // */x", "// /* \nx", "/* \" */ x", "/*\xc3\xa9*/x"}) {
    Reading r(text);
    EXPECT_EQ(r.cursor.peek(), 'x') << text;
    EXPECT_EQ(r.cursor.take_word("x"), "x");
    EXPECT_TRUE(r.cursor.at_end());
  }
  for (const std::string_view text : {"", " ", "// x", "/* x */", "/* x */ // y"}) {
    Reading r(text);
    EXPECT_TRUE(r.cursor.at_end()) << text;
    EXPECT_TRUE(r.cursor.ok());
  }
}

TEST(Lexer, EachTokenAtTheEndOfTheText) {
  EXPECT_EQ(Reading("word").cursor.take_word("w"), "word");
  EXPECT_EQ(Reading("%na.me-1").cursor.take_name("n"), "na.me-1");
  EXPECT_EQ(Reading("-12").cursor.integer("i"), -12);
  EXPECT_EQ(Reading("1.5").cursor.decimal("d"), 1.5);
  EXPECT_EQ(Reading(".5").cursor.decimal("d"), 0.5);
  EXPECT_EQ(Reading("1.").cursor.decimal("d"), 1.0);
  EXPECT_EQ(Reading("-1e-3").cursor.decimal("d"), -1e-3);
  EXPECT_EQ(Reading("'a'").cursor.string("s"), "a");
  EXPECT_EQ(Reading("\"a\"").cursor.string("s"), "a");
  EXPECT_EQ(Reading("{a{b}}").cursor.dictionary(), "{a{b}}");
  EXPECT_EQ(Reading("true").cursor.boolean("b"), true);
  EXPECT_EQ(Reading("key=").cursor.take_key("k"), "key");
  EXPECT_TRUE(Reading("->").cursor.eat("->"));
  for (const std::string_view text : {"%", "\"", "-", "{", "key", "/", "tru"}) {
    Reading r(text);
    r.cursor.take_name("a name");
    r.cursor.expect('=');
    EXPECT_FALSE(r.cursor.ok()) << text;
  }
}

TEST(Lexer, IntegersOf64Bits) {
  EXPECT_EQ(Reading("18446744073709551615").cursor.integer("i"), -1);  // the bits
  EXPECT_EQ(Reading("9223372036854775807").cursor.integer("i"), INT64_MAX);
  EXPECT_EQ(Reading("-9223372036854775808").cursor.integer("i"), INT64_MIN);
  EXPECT_EQ(Reading("000000000000000000000000000007").cursor.integer("i"), 7);
  for (const std::string_view text : {"18446744073709551616", "-9223372036854775809", "99999999999999999999999", "-"}) {
    Reading r(text);
    r.cursor.integer("i");
    EXPECT_FALSE(r.cursor.ok()) << text;
  }
}

TEST(Lexer, StringsResolveEscapes) {
  EXPECT_EQ(Reading(R"("\n\t\r\a\b\f\v\\\"\'\?")").cursor.string("s"), "\n\t\r\a\b\f\v\\\"'?");
  EXPECT_EQ(Reading(R"("\1\12\101\x41\xe\0001")").cursor.string("s"), std::string("\1\12A\x41\x0e\0001", 7));
  EXPECT_EQ(Reading("\"a\nb\xff\"").cursor.string("s"), "a\nb\xff");
  EXPECT_EQ(Reading("'\"'").cursor.string("s"), "\"");
  for (const std::string_view text :
       {R"("\q")", R"("\x")", R"("\x100")", R"("\777")", "\"\\\n\"", R"("\)", "'a\"", "\"a'"}) {
    Reading r(text);
    r.cursor.string("s");
    EXPECT_FALSE(r.cursor.ok()) << text;
  }
}

// Every string is written so that it reads as itself.
TEST(Lexer, StringsRoundTrip) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& text :
       {all, std::string("\0001", 2), std::string("{\"a\":\"}\"}"), std::string("{"), std::string("}")}) {
    const auto module = parse_module("r = f32[] negate(f32[] p)");
    ASSERT_TRUE(module);
    hlo::Annotations& a = (*module)->entry()->root()->mutable_annotations();
    a.metadata.op_name = a.backend_config = a.frontend_attributes["key"] = a.frontend_attributes["odd key=\"'"] = text;
    const auto again = parse_module(print(**module));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(equal(**module, **again));
  }
}

TEST(Lexer, DictionariesBalance) {
  EXPECT_TRUE(is_dictionary("{}"));
  EXPECT_TRUE(is_dictionary(R"({"}":"\"}"})"));
  for (const std::string_view text : {"", "{", "}", "{}}", "{{}", "{} ", " {}", R"({"})", R"({"\"})"})
    EXPECT_FALSE(is_dictionary(text)) << text;
}

TEST(Lexer, GroupsEnd) {
  const auto length = [](std::string_view text) -> std::ptrdiff_t {
    const char* end = group_end(text.data(), text.data() + text.size());
    return end == nullptr ? -1 : end - text.data();
  };
  EXPECT_EQ(length("{} x"), 2);
  EXPECT_EQ(length("{a(b[c])} x"), 9);
  EXPECT_EQ(length("{\"}\" '}' /*}*/ //}\n} x"), 20);
  EXPECT_EQ(length("{"), -1);
  EXPECT_EQ(length("{\"}"), -1);
}

TEST(Lexer, ErrorsAreSticky) {
  Reading r("a b c");
  r.cursor.fail("H501", r.cursor.at(), "first");
  EXPECT_TRUE(r.cursor.at_end());
  r.cursor.expect('x');
  r.cursor.integer("i");
  r.cursor.list('{', '}', [] { FAIL(); });
  EXPECT_EQ(r.message(), "<text>:1:1: error[H501]: first\n  a b c\n  ^");
  r.cursor.resume(r.cursor.failed_at());
  EXPECT_EQ(r.cursor.take_word("a"), "a");
}

TEST(Lexer, PlacesCountBytesAndTabsAsOne) {
  const auto place_of_error = [](std::string_view text) {
    const auto module = parse_module(text);
    const std::string& message = module.error().message();
    return message.substr(7, message.find(": error") - 7);
  };
  EXPECT_EQ(place_of_error("ENTRY e {\n\t\tp = f32[] nope()\n}"), "2:13");
  EXPECT_EQ(place_of_error("ENTRY e {\r\n  p = f32[] nope()\r\n}\r\n"), "2:13");
  EXPECT_EQ(place_of_error("ENTRY e { /*\xc3\xa9*/ p = f32[] nope() }"), "1:28");
  EXPECT_EQ(place_of_error("ENTRY e {"), "1:10");
  EXPECT_EQ(place_of_error("ENTRY e {\n"), "2:1");
}

TEST(Lexer, CarriageReturnsAreSpaces) {
  const auto unix_text = parse_module("HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n}\n");
  const auto dos_text = parse_module("HloModule m\r\n\r\nENTRY e {\r\n  p = f32[] parameter(0)\r\n}\r\n");
  ASSERT_TRUE(unix_text && dos_text);
  EXPECT_TRUE(equal(**unix_text, **dos_text));
}

TEST(Lexer, ReservedWordsNeedAPercent) {
  for (const std::string_view word : {"true", "false", "inf", "nan", "ROOT", "ENTRY", "HloModule", "f32", "pred",
                                      "token", "replicated", "maximal", "manual", "shard_as"}) {
    const std::string name(word);
    const auto module =
        parse_module("ENTRY e { %" + name + " = f32[] parameter(0)\n ROOT r = f32[] negate(%" + name + ") }");
    ASSERT_TRUE(module) << module.error().message();
    // Without % these names keep theirs.
    const std::string text = print(**module, {.percent = false});
    EXPECT_NE(text.find("%" + name + " ="), std::string::npos) << text;
    const auto again = parse_module(text);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(equal(**module, **again));
    EXPECT_FALSE(parse_module("ENTRY e { " + name + " = f32[] parameter(0) }")) << word;
  }
  for (const std::string_view word : {"tuple", "buffer", "add", "devices", "mesh", "window", "b"})
    EXPECT_TRUE(parse_module("ENTRY e { " + std::string(word) + " = f32[] parameter(0) ROOT r = f32[] negate(" +
                             std::string(word) + ") }"))
        << word;
}

}  // namespace
}  // namespace hloom::text
