// One case and more for each number of a diagnostic, with line and column.
#include "text/errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "text/parse.h"

namespace hloom::text {
namespace {

struct Case {
  std::string_view code;
  std::string_view text;  ///< the place of the error follows a ^
};

// The message of the error of a text, which must be there.
std::string message_of(std::string_view text, const ParseOptions& options) {
  const auto module = parse_module(text, options);
  if (module) return "no error";
  EXPECT_EQ(module.error().code(), Code::InvalidArgument);
  return module.error().message();
}

// Expects the error where the ^ stands, and the line with a caret below that place.
void expect_error(std::string_view code, std::string text, ParseOptions options = {}) {
  SCOPED_TRACE(text);
  const std::size_t mark = text.find('^');
  ASSERT_NE(mark, std::string::npos);
  text.erase(mark, 1);
  const std::size_t line_start = mark == 0 ? 0 : text.rfind('\n', mark - 1) + 1;  // npos + 1 is 0
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), '\n') + 1;
  const std::size_t column = mark - line_start + 1;
  options.file_name = "t.hlo";
  const std::string message = message_of(text, options);
  const std::string expected = words("t.hlo:", line, ":", column, ": error[", code, "]: ");
  EXPECT_TRUE(message.starts_with(expected)) << "expected " << expected << "\nfound " << message;
  EXPECT_NE(message.find('\n' + std::string(column + 1, ' ') + '^'), std::string::npos) << message;
}

// As the body of the entry, with some instructions before.
std::string in_entry(std::string_view line) {
  return words("HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  s = s32[2,3] parameter(1)\n  ", line, "\n}\n");
}

TEST(Errors, TheWorkedPositions) {
  const auto at = [](std::string_view line) {
    return words("HloModule m\nENTRY e {  p = f32[4] parameter(0)\n  x = f32[] parameter(1)\n  ", line, "\n}\n");
  };
  for (const auto& [line, where] : {std::pair{"ROOT r = f32[4] add(p, q)", "t.hlo:4:26: error[H608]"},
                                    std::pair{"c = s32[2] constant({1, 2, 3})", "t.hlo:4:30: error[H402]"},
                                    std::pair{"y=f32[] negate(x)", "t.hlo:4:3: error[H104]"},
                                    std::pair{"t = f32[2,3]{1} negate(x)", "t.hlo:4:15: error[H305]"},
                                    std::pair{"z = s32[] iota(), iota_dimension=0, foo=1", "t.hlo:4:39: error[H503]"},
                                    std::pair{"w = f32[2] frobnicate(x)", "t.hlo:4:14: error[H610]"}}) {
    const std::string message = message_of(at(line), {.file_name = "t.hlo"});
    EXPECT_TRUE(message.starts_with(where)) << message;
  }
}

TEST(Errors, InTheEntry) {
  const Case cases[] = {
      {"H101", "r = f32[4] ^@negate(p)"},
      {"H101", "r = f32[4] negate(p)^$"},
      {"H101", "r = f32[4] negate(^/p)"},
      {"H102", "r = f32[4] negate(^/* p)"},
      {"H103", "r = f32[^99999999999999999999] negate(p)"},
      {"H103", "r = f32[4] reverse(p), dimensions={^18446744073709551616}"},
      {"H103", "c = s64[] constant(^-18446744073709551617)"},
      {"H104", "^y=f32[4] negate(p)"},
      {"H104", "ROOT ^y=f32[4] negate(p)"},
      {"H105", "c = f32[] constant(^0x1p3)"},
      {"H105", "c = s32[] constant(^0x10)"},
      {"H105", "r = f32[4] reverse(p), dimensions={^0x0}"},
      {"H106", "c = f32[] constant(nan(^0x0))"},
      {"H106", "c = f64[] constant(nan(^0x10000000000000))"},
      {"H106", "c = f32[] constant(nan(^7))"},
      {"H107", "r = f32[4] negate(p), metadata={op_name=\"a^\\q\"}"},
      {"H107", "r = f32[4] negate(p), metadata={op_name=\"^\\xfff\"}"},
      {"H108", "r = f32[4] negate(p), metadata={op_name=^\"a}"},
      {"H209", "r = f32[4] call(p), to_apply=^nothing"},
      {"H211", "^p = f32[4] negate(p)"},
      {"H211", "%^p = f32[4] negate(p)"},
      {"H212", "ROOT a = f32[4] negate(p)\n  ^ROOT b = f32[4] negate(p)"},
      {"H214", "q = f32[4] parameter(^-1)"},
      {"H214", "q = f32[4] parameter(^0)"},
      {"H214", "q = f32[4] parameter(^900000000)"},
      {"H301", "r = ^f33[4] negate(p)"},
      {"H302", "r = f32[^-4] negate(p)"},
      {"H302", "r = ^f32[4294967296,4294967296] negate(p)"},
      {"H302", "r = ^token[1] after-all()"},
      {"H303", "q = f32[?,3] ^parameter(2)"},
      {"H304", "r = token[]^{0} after-all()"},
      {"H304", "r = (f32[4])^{0} tuple(p)"},
      {"H305", "t = f32[2,3]^{1} negate(p)"},
      {"H306", "t = f32[2,3]^{1,1} negate(p)"},
      {"H307", "t = f32[2,3]{1,0:^Q(1)} negate(p)"},
      {"H307", "t = f32[2,3]{1,0:S(1)^T(2)} negate(p)"},
      {"H308", "t = f32[2,3]{1,0:^#(u32)} negate(p)"},
      {"H309", "t = f32[2,3]{1,0:T(^0)} negate(p)"},
      {"H309", "t = f32[2,3]{1,0:T^(2,2,2)} negate(p)"},
      {"H309", "t = f32[2,3]{1,0:T^(2,*)} negate(p)"},
      {"H310", "t = s4[2,3]{1,0:E^(3)} negate(p)"},
      {"H401", "c = s32[2] constant({1^})"},
      {"H401", "c = s32[2,2] constant({{1, 2}, {3^}})"},
      {"H401", "c = (s32[], s32[]) constant((1^))"},
      {"H402", "c = s32[2] constant({1, 2, ^3})"},
      {"H402", "c = s32[2,1] constant({{1}, {2}, ^{3}})"},
      {"H403", "c = s32[2] constant({^{1}, 2})"},
      {"H404", "c = s32[2,2] constant({^1, 2})"},
      {"H404", "c = s32[2] constant(^1)"},
      {"H405", "c = s32[2] constant({^(1, 2), 3})"},
      {"H405", "c = f32[] constant(^(1, 2))"},
      {"H406", "c = s32[] constant(^})"},
      {"H407", "c = s32[2,2] constant({^..., {1, 2}})"},
      {"H407", "c = s32[2,2] constant({{^...}, {1, 2}})"},
      {"H407", "c = s32[2,2] constant(^{...})"},
      {"H410", "c = s8[2] constant({1, ^128})"},
      {"H410", "c = u8[] constant(^-1)"},
      {"H410", "c = pred[] constant(^2)"},
      {"H410", "c = f16[] constant(^65520)"},
      {"H410", "c = f32[] constant(^1e39)"},
      {"H410", "c = f64[] constant(^1.8e308)"},
      {"H410", "c = f8e4m3fn[] constant(^inf)"},
      {"H410", "c = f4e2m1fn[] constant(^nan)"},
      {"H410", "c = f4e2m1fn[] constant(^7)"},
      {"H410", "c = f8e8m0fnu[] constant(^0)"},
      {"H411", "c = s32[] constant(^1.5)"},
      {"H411", "c = s32[] constant(^1e3)"},
      {"H411", "c = s32[] constant(^nan)"},
      {"H411", "c = s32[] constant(^-inf)"},
      {"H412", "c = f16[] constant(^nan(0x400))"},
      {"H412", "c = f8e4m3fn[] constant(^nan(0x1))"},
      {"H413", "c = token[] constant(^1)"},
      {"H501", "r = f32[4] negate(p ^]"},
      {"H501", "r ^f32[4] negate(p)"},
      {"H501", "r = f32[4] negate(p) ^= 3"},
      {"H501", "^true = f32[4] negate(p)"},
      {"H501", "r = f32[4] negate(^f32)"},
      {"H502", "r = f32[4] reverse(p), dimensions={0}, ^dimensions={0}"},
      {"H502", "r = f32[4] negate(p), metadata={op_name=\"a\" ^op_name=\"b\"}"},
      {"H503", "r = f32[4] negate(p), ^dimensions={0}"},
      {"H503", "r = f32[4] reduce-window(p, p), window={^siz=2}"},
      {"H504", "r = f32[4] ^reverse(p)"},
      {"H504", "r = f32[4] ^while(p), body={ a = f32[4] parameter(0) }"},
      {"H505", "r = f32[4] sqrt(p), result_accuracy={tolerance=^{atol=1,rtol=2}}"},
      {"H505", "r = f32[4] reduce-window(p, p), window=^{stride=2}"},
      {"H506", "r = f32[4] convolution(p, p), feature_group_count=^0, dim_labels=bf_io->bf"},
      {"H506", "r = f32[4] sqrt(p), result_accuracy={tolerance={atol=^-1,rtol=2,ulps=0}}"},
      {"H506", "r = f32[4] negate(p), statistics={visualizing_index=^1,a=0.5}"},
      {"H507", "r = pred[4] compare(p, p), direction=^XX"},
      {"H507", "r = f32[4] dot(p, p), algorithm=^dot_f32"},
      {"H520", "r = f32[4] negate(p), sharding={replicated ^manual}"},
      {"H520", "r = f32[4] negate(p), sharding={mesh['a'=2,^'a'=2]}"},
      {"H521", "r = f32[4] negate(p), sharding={^maximal}"},
      {"H521", "r = f32[4] negate(p), sharding={^replicated device=1}"},
      {"H522", "r = f32[4] negate(p), sharding={devices=^[2]0,1,2}"},
      {"H522", "r = f32[4] negate(p), sharding={devices=^[2]<=[4]}"},
      {"H522", "r = f32[4] all-reduce(p), replica_groups=^[2,2]<=[8], to_apply=e"},
      {"H523", "r = f32[4] negate(p), sharding={devices=^[2]0,0}"},
      {"H525", "r = f32[4] negate(p), sharding={devices=[4]<=[2,2]^T(0,0)}"},
      {"H525", "r = f32[4] all-reduce(p), replica_groups=[2,2]<=[2,2]^, to_apply=e"},
      {"H530", "r = f32[4] reduce-window(p, p), window={size=2 ^stride=2x2}"},
      {"H531", "r = f32[4] reduce-window(p, p), window={size=2 pad=^1_1_1}"},
      {"H532", "r = f32[4] reduce-window(p, p), window={size=2 stride=^0}"},
      {"H532", "r = f32[4] reduce-window(p, p), window={size=2 rhs_reversal=^2}"},
      {"H533", "r = f32[4] pad(p, p), padding=^0_0_-1"},
      {"H534", "r = f32[4] ^convolution(p, p), dim_labels=bf_io->bf"},
      {"H535", "r = f32[4] convolution(p, p), dim_labels=b^b_io->bf"},
      {"H535", "r = f32[4] convolution(p, p), dim_labels=^b0_io->bf"},
      {"H536", "r = s32[1] ^slice(s), slice={[0:1]}"},
      {"H540", "r = f32[4] all-reduce(p), replica_groups={{0,1},{^0}}, to_apply=e"},
      {"H541", "r = f32[4] all-reduce(p), replica_groups=^{{0,2}}, to_apply=e"},
      {"H542", "r = f32[4] all-gather(p), replica_groups=^{{0},{1,2}}, dimensions={0}"},
      {"H601", "r = ^iota(), iota_dimension=0"},
      {"H602", "r = f32[5] ^negate(p)"},
      {"H603", "r = f32[4] ^negate(p, p)"},
      {"H603", "r = f32[4] ^add(p)"},
      {"H604", "r = f32[4] ^frobnicate-start(p)"},
      {"H605", "r = f32[4] ^negate-done(p)"},
      {"H605", "a = ((f32[4]), f32[4]) negate-start(p)\n  r = f32[4] ^sine-done(a)"},
      {"H605", "a = ((f32[4]), f32[4]) negate-start(p)\n  r = f32[4] ^negate-done(a), async_execution_thread=\"x\""},
      {"H606", "r = f32[4] negate(p), control-predecessors={^q}"},
      {"H607", "r = f32[4] negate(p), control-predecessors={^r}"},
      {"H608", "r = f32[4] negate(^q)"},
      {"H608", "r = f32[4] negate(^r)"},
      {"H609", "r = f32[4] negate(^f32[5] p)"},
      {"H610", "r = f32[4] ^negat(p)"},
      {"H611", "r = f32[4] ^add(p, s)"},
      {"H611", "r = ^add(p, s)"},
      {"H611", "r = f32[4] negate(p#^0)"},
      {"H612", "r = s32[2] ^reduce(s, s0), dimensions={1}, to_apply={ a = s32[] parameter(0) }"},
      {"H713", "r = f32[] ^dot(p, s), lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
  };
  for (const Case& c : cases) {
    std::string line(c.text);
    if (line.find("s0)") != std::string::npos) line = "s0 = s32[] constant(0)\n  " + line;
    expect_error(c.code, in_entry(line));
  }
}

TEST(Errors, InTheModule) {
  const Case cases[] = {
      {"H101", "HloModule m^\001\n"},
      {"H102", "HloModule m ^/* ENTRY e { }"},
      {"H109", "r = f32[4] negate(f32[4] p), backend_config=^{\"a\":{\"}\"}"},
      {"H201", "HloModule m\n^"},
      {"H201", "// nothing\n^"},
      {"H202", "HloModule m\nENTRY e { p = f32[] parameter(0) }\n^ENTRY f { q = f32[] parameter(0) }\n"},
      {"H203", "r = f32[] negate(f32[] p)\n^x = f32[] negate(p)\n"},
      {"H203",
       "HloModule m\nENTRY e { p = f32[] parameter(0) }\n// -----^\nHloModule n\nENTRY e { p = f32[] parameter(0) }"},
      {"H204", "HloModule m, ^is_scheduld=true\n"},
      {"H205", "HloModule m, input_output_alias={ ^{0}: (0, {}) }\nENTRY e { p = f32[] parameter(0) }\n"},
      {"H205", "HloModule m, input_output_alias={ ^{}: (1, {}) }\nENTRY e { p = f32[] parameter(0) }\n"},
      {"H205", "HloModule m, buffer_donor={ ^(0, {1}) }\nENTRY e { p = f32[] parameter(0) }\n"},
      {"H206", "HloModule m, entry_computation_layout=^{(f32[2]{0})->f32[]}\nENTRY e { p = f32[] parameter(0) }\n"},
      {"H206", "HloModule m, entry_computation_layout=^{()->f32[]}\nENTRY e { p = f32[] parameter(0) }\n"},
      {"H207", "HloModule m\nFileNames\n1 \"a\"\n^3 \"b\"\n"},
      {"H208",
       "HloModule m\nFileNames\n1 \"a\"\nFunctionNames\nFileLocations\n"
       "^1 {file_name_id=2 function_name_id=0 line=1 end_line=1 column=1 end_column=1}\n"},
      {"H504", "HloModule m\nFileNames\nFunctionNames\nFileLocations\n1 ^{file_name_id=0 line=1}\n"},
      {"H210", "HloModule m\nc { p = f32[] parameter(0) }\n^c { p = f32[] parameter(0) }\n"},
      {"H213", "HloModule m\nENTRY ^e {\n}\n"},
      {"H214", "HloModule m\nENTRY ^e {\n  p = f32[] parameter(1)\n  q = f32[4] constant({1,2,3,4})\n}\n"},
      {"H215", "HloModule m\nENTRY e (p: f32[]) -> ^f32[2] {\n  p = f32[] parameter(0)\n}\n"},
      {"H209", "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  r = f32[] call(p), to_apply=^e\n}\n"},
      {"H502", "HloModule m, num_partitions=2, ^num_partitions=2\n"},
      {"H506", "HloModule m, replica_count=^0\n"},
      {"H507", "HloModule m, input_output_alias={ {}: (0, {}, ^can-alias) }\n"},
  };
  for (const Case& c : cases) expect_error(c.code, std::string(c.text));
}

TEST(Errors, NestingIsLimited) {
  const std::string deep(600, '(');
  for (const std::string& text :
       {"HloModule m\nENTRY e {\n  p = " + deep + "f32[]" + std::string(600, ')') + " parameter(0)\n}\n",
        "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  r = f32[] " +
            [] {
              std::string nested;
              for (int i = 0; i < 600; ++i) nested += "negate(";
              return nested;
            }() +
            "p" + std::string(600, ')') + "\n}\n"}) {
    const std::string message = message_of(text, {});
    EXPECT_NE(message.find("error[H110]: nested deeper than 500"), std::string::npos) << message;
  }
  EXPECT_TRUE(parse_module("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  r = f32[] negate(negate(p))\n}\n",
                           {.max_depth = 6}));
  EXPECT_FALSE(
      parse_module("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  r = f32[] negate(negate(negate(p)))\n}\n",
                   {.max_depth = 3}));
}

// Calls nest as well, whichever order the computations stand in.
TEST(Errors, CallsAreLimited) {
  const auto chain = [](int length, bool backward) {
    std::vector<std::string> computations = {"c0 { p = f32[] parameter(0) }\n"};
    for (int i = 1; i < length; ++i)
      computations.push_back(
          words("c", i, " { p = f32[] parameter(0)\n  r = f32[] call(p), to_apply=c", i - 1, "\n}\n"));
    if (backward) std::reverse(computations.begin(), computations.end());
    std::string text = "HloModule m\n";
    for (const std::string& c : computations) text += c;
    return text + words("ENTRY e { p = f32[] parameter(0)\n  r = f32[] call(p), to_apply=c", length - 1, "\n}\n");
  };
  for (const bool backward : {false, true}) {
    EXPECT_TRUE(parse_module(chain(100, backward)));
    EXPECT_NE(message_of(chain(100000, backward), {}).find("error[H110]"), std::string::npos);
  }
}

TEST(Errors, SuggestWhatIsNear) {
  const Case cases[] = {{"did you mean 'negate'?", "r = f32[4] negat(p)"},
                        {"did you mean 'dimensions'?", "r = f32[4] reverse(p), dimension={0}"},
                        {"did you mean 'power'?", "power = f32[4] negate(p)\n  r = f32[4] negate(pwoer)"},
                        {"did you mean 'TRANSPOSE'?", "r = f32[4] triangular-solve(p, p), transpose_a=TRANSPOS"},
                        {"did you mean 'reduce-scatter'?", "r = f32[4] reduce_scatter(p)"}};
  for (const Case& c : cases) EXPECT_NE(message_of(in_entry(c.text), {}).find(c.code), std::string::npos) << c.text;
  EXPECT_NE(message_of(
                "HloModule m\nbody { p = f32[] parameter(0) }\nENTRY e {\n p = f32[] parameter(0)\n r = f32[] call(p), "
                "to_apply=bodi\n}\n",
                {})
                .find("did you mean 'body'?"),
            std::string::npos);
}

TEST(Errors, SeveralInOneRun) {
  const std::string message = message_of(
      "HloModule m\n"
      "c {\n  p = f32[] parameter(0)\n  r = f32[] frobnicate(p)\n  s = f32[] negate(r)\n}\n"
      "ENTRY e {\n  p = f32[4] parameter(0)\n  a = f32[4] negate(q)\n  b = f32[4] add(a, p)\n"
      "  c = f32[5 negate(p)\n  ROOT d = f32[4] sine(p), nonsense=3\n}\n",
      {.file_name = "t.hlo"});
  std::size_t errors = 0;
  for (std::size_t at = 0; (at = message.find("error[", at)) != std::string::npos; ++at) ++errors;
  EXPECT_EQ(errors, 4u) << message;  // none for uses of what is wrong already
  for (const std::string_view where :
       {"t.hlo:4:13: error[H610]", "t.hlo:9:21: error[H608]", "t.hlo:11:13: error[H501]", "t.hlo:12:28: error[H503]"})
    EXPECT_NE(message.find(where), std::string::npos) << where << '\n' << message;
}

TEST(Errors, AtMostTwenty) {
  std::string text = "HloModule m\nENTRY e {\n";
  for (int i = 0; i < 100; ++i) text += words("  a", i, " = f32[] frobnicate()\n");
  const std::string message = message_of(text + "}\n", {});
  std::size_t errors = 0;
  for (std::size_t at = 0; (at = message.find("error[", at)) != std::string::npos; ++at) ++errors;
  EXPECT_EQ(errors, 20u);
}

TEST(Errors, NotesPointToTheOtherPlace) {
  EXPECT_NE(message_of(in_entry("p = f32[] constant(1)"), {.file_name = "t.hlo"})
                .find("\nt.hlo:4:3: note: the first definition"),
            std::string::npos);
}

TEST(Errors, LinesCountFromTheOptions) {
  EXPECT_TRUE(
      message_of("HloModule m, x=1\n", {.file_name = "f", .first_line = 40}).starts_with("f:40:14: error[H204]"));
}

}  // namespace
}  // namespace hloom::text
