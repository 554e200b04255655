// Attributes: all are exercised, written only where they are not the default, and what is written is what was read.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "text/attribute_rules.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

using hlo::Opcode;

std::string read_golden(std::string_view name) {
  std::ifstream stream(std::string(HLOOM_SOURCE_DIR) + "/src/text/golden/" + std::string(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::unique_ptr<hlo::Module> parse(std::string_view text) {
  auto module = parse_module(text, {.verify = false});
  EXPECT_TRUE(module) << module.error().message() << '\n' << text;
  return module ? *std::move(module) : nullptr;
}

// The golden file has every attribute of every opcode, and no module of it loses one.
TEST(Attributes, AllAreWritten) {
  const std::string text = read_golden("every-attribute.cases.hlo");
  const auto modules = parse_modules(text, {.verify = false});
  ASSERT_TRUE(modules) << modules.error().message();
  std::set<std::pair<Opcode, std::string_view>> written;
  for (const auto& module : *modules)
    for (const hlo::Computation& c : module->computations())
      for (const hlo::Instruction& i : c.instructions())
        for (const AttributeRule& rule : rules_for(i.opcode())) {
          std::string out;
          if (rule.write(out, i, {})) written.emplace(i.opcode(), rule.name);
        }
  for (int n = 0; n < hlo::kNumOpcodes; ++n) {
    const auto opcode = static_cast<Opcode>(n);
    for (const AttributeRule& rule : own_rules(opcode)) {
      // Accepted without effect: another spelling of compare's type, a mode, the callee of links of a chain.
      const bool ignored = rule.name == "order" || rule.name == "mode" ||
                           (rule.name == "calls" && opcode != Opcode::Fusion && opcode != Opcode::AsyncStart);
      EXPECT_EQ(written.contains({opcode, rule.name}), !ignored) << opcode << ' ' << rule.name;
    }
  }
  for (const std::string_view name : {"sharding", "frontend_attributes", "control-predecessors", "statistics", "origin",
                                      "metadata", "backend_config"})
    EXPECT_TRUE(written.contains({Opcode::Negate, name})) << name;
}

// The golden file is in canonical form: what is printed are its lines.
TEST(Attributes, AreWrittenAsTheyWereRead) {
  const std::string text = read_golden("every-attribute.cases.hlo");
  PrintOptions options;
  options.percent = options.signatures = false;
  for (const ModuleText& part : split_modules(text)) {
    const std::string printed = print(*parse(part.text), options);
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = part.text.find("\n  ", at)) != std::string_view::npos; ++at) {
      const std::string_view line = part.text.substr(at, part.text.find('\n', at + 1) - at);
      EXPECT_NE(printed.find(line), std::string::npos) << line;
      ++lines;
    }
    EXPECT_GT(lines, 40u);
  }
}

TEST(Attributes, ResultAccuracyStandsOnSomeFunctions) {
  for (const std::string_view op : {"acos",
                                    "acosh",
                                    "asin",
                                    "asinh",
                                    "atanh",
                                    "cbrt",
                                    "cosine",
                                    "cosh",
                                    "erf",
                                    "exponential",
                                    "exponential-minus-one",
                                    "log",
                                    "log-plus-one",
                                    "logistic",
                                    "rsqrt",
                                    "sine",
                                    "sinh",
                                    "sqrt",
                                    "tan",
                                    "tanh"})
    for (const std::string_view value :
         {"{mode=highest}", "{mode=default}", "{tolerance={atol=0.5,rtol=1e-06,ulps=3}}"}) {
      const std::string line = "  ROOT r = f32[4]{0} " + std::string(op) + "(p), result_accuracy=" + std::string(value);
      const auto module = parse("ENTRY e {\n  p = f32[4]{0} parameter(0)\n" + line + "\n}\n");
      EXPECT_NE(print(*module, {.percent = false}).find(line), std::string::npos) << print(*module);
    }
  EXPECT_FALSE(parse_module("r = f32[4] negate(f32[4] p), result_accuracy={mode=highest}"));
}

// Written with its default value or not, an attribute gives an equal module, which does not print it.
TEST(Attributes, DefaultsAreNotWritten) {
  constexpr std::string_view kBase =
      "c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
      "ENTRY e {\n  p = f32[4] parameter(0)\n  q = f32[4,4] parameter(1)\n"
      "  z = f32[] constant(0)\n  k = s32[4,1] parameter(2)\n  t = token[] after-all()\n  ROOT r = ";
  struct Case {
    std::string_view instruction, attribute;
  };
  const Case cases[] = {
      {"f32[4] reshape(p)", "inferred_dimension=-1"},
      {"pred[4] compare(p, p), direction=EQ", "type=FLOAT"},
      {"pred[4,1] compare(k, k), direction=EQ", "type=SIGNED"},
      {"pred[4,1] compare(k, k), direction=EQ", "order=TOTAL"},
      {"f32[4] map(p, p), to_apply=c", "dimensions={0}"},
      {"f32[] broadcast(z)", "dimensions={}"},
      {"f32[4,4] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "lhs_batch_dims={}"},
      {"f32[4,4] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "operand_precision={default,default}"},
      {"f32[4,4] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "algorithm=unset"},
      {"f32[4,4] convolution(q, q), dim_labels=bf_io->bf", "window={}"},
      {"f32[4,4] convolution(q, q), dim_labels=bf_io->bf", "feature_group_count=1"},
      {"f32[4,4] convolution(q, q), dim_labels=bf_io->bf", "batch_group_count=1"},
      {"f32[4,4] convolution(q, q), dim_labels=bf_io->bf", "conv_kind=unset"},
      {"f32[4,4] triangular-solve(q, q)", "transpose_a=NO_TRANSPOSE"},
      {"f32[4,4] triangular-solve(q, q)", "left_side=false"},
      {"f32[4,4] cholesky(q)", "lower=false"},
      {"(f32[2], s32[2]) topk(p), k=2", "largest=true"},
      {"(f32[2], s32[2]) topk(p), k=2", "is_stable=false"},
      {"f32[4] all-reduce(p), to_apply=c", "replica_groups={}"},
      {"f32[4] all-reduce(p), to_apply=c", "use_global_device_ids=false"},
      {"f32[4] all-reduce(p), to_apply=c", "mode=cross_replica"},
      {"f32[4] reduce-window(p, z), window={size=1}, to_apply=c", "sharding={}"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "window={}"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "api_version=API_VERSION_ORIGINAL"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "schedule=SCHEDULE_NONE"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "padding_type=PADDING_INVALID"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "custom_call_has_side_effect=false"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "called_computations={}"},
      {"f32[4] custom-call(p), custom_call_target=\"f\"", "output_to_operand_aliasing={}"},
      {"token[] outfeed(p, t)", "outfeed_shape=f32[4]{0}"},
      {"(f32[4], token[]) infeed(t)", "infeed_config=\"\""},
      {"f32[4] call(p), to_apply=c", "is_composite=false"},
      {"f32[4] fusion(p), kind=kLoop, calls=c", "output_to_operand_aliasing={}"},
      {"((f32[4]), f32[4]) async-start(p), calls=c", "async_execution_thread=\"main\""},
      {"f32[4] negate(p)", "metadata={}"},
      {"f32[4] negate(p)", "frontend_attributes={}"},
      {"f32[4] negate(p)", "backend_config=\"\""},
      {"f32[4] negate(p)", "control-predecessors={}"},
  };
  for (const Case& c : cases) {
    if (c.attribute == "sharding={}") continue;  // of an empty tuple: not a default
    const auto without = parse(std::string(kBase) + std::string(c.instruction) + "\n}\n");
    const auto with =
        parse(std::string(kBase) + std::string(c.instruction) + ", " + std::string(c.attribute) + "\n}\n");
    ASSERT_TRUE(without && with);
    EXPECT_TRUE(equal(*without, *with)) << c.attribute;
    EXPECT_EQ(print(*without), print(*with));
  }
}

TEST(Attributes, ComparisonsKnowTheirType) {
  const auto type_of = [](std::string_view element, std::string_view attribute) {
    const std::string t(element);
    const auto m = parse("r = pred[2] compare(" + t + "[2] a, " + t + "[2] b), direction=LT" + std::string(attribute));
    return m->entry()->root()->attr<hlo::CompareAttr>().type;
  };
  for (const std::string_view t : {"f32", "bf16", "f8e4m3fn", "c64"}) EXPECT_EQ(type_of(t, ""), hlo::Comparison::Float);
  for (const std::string_view t : {"s1", "s8", "s64"}) EXPECT_EQ(type_of(t, ""), hlo::Comparison::Signed);
  for (const std::string_view t : {"u4", "u64", "pred"}) EXPECT_EQ(type_of(t, ""), hlo::Comparison::Unsigned);
  EXPECT_EQ(type_of("f32", ", type=TOTALORDER"), hlo::Comparison::TotalOrder);
  EXPECT_EQ(type_of("f32", ", order=TOTAL"), hlo::Comparison::TotalOrder);
  EXPECT_EQ(type_of("s32", ", order=TOTAL"), hlo::Comparison::Signed);
}

// What hloom decided and the rest of a backend_config, in any order, and back.
TEST(Attributes, DecisionsOfBackendConfigs) {
  struct Case {
    std::string_view text, rest;
    hlo::StringMap decisions;
  };
  const Case cases[] = {
      {R"({"hloom":{"a":"b","c":"d"}})", "", {{"a", "b"}, {"c", "d"}}},
      {R"({"hloom":{"a":"b"},"x":{"y":[1,"}"]}})", R"({"x":{"y":[1,"}"]}})", {{"a", "b"}}},
      {R"({"x":1, "hloom":{"a":"b"}})", R"({"x":1})", {{"a", "b"}}},
      {R"({"x":1,"hloom":{"a":"b"},"z":2})", R"({"x":1,"z":2})", {{"a", "b"}}},
      {R"({"x":{"hloom":{"a":"b"}}})", R"({"x":{"hloom":{"a":"b"}}})", {}},
      {R"({"hloom":{"n":3,"list":[1,{"a":2}],"yes":true}})",
       "",
       {{"list", R"([1,{"a":2}])"}, {"n", "3"}, {"yes", "true"}}},
      {R"({"hloom":{"a":"\"\\\n\u00e9"}})", "", {{"a", "\"\\\n\xc3\xa9"}}},
      {R"({"hloom":{"a":"b","backend_config":"plain"}})", "plain", {{"a", "b"}}},
      {R"({uplo = 76 : ui8})", "{uplo = 76 : ui8}", {}},
      {R"("plain \"text\"")", "plain \"text\"", {}},
      {R"("{\"a\":1}")", R"({"a":1})", {}},
      {R"("{\"hloom\":{\"a\":\"b\"}}")", R"({"hloom":{"a":"b"}})", {}},
      {R"({"hloom":{},"hloom":{"a":"b"}})", R"({"hloom":{"a":"b"}})", {}},
      {R"({"hloom":{"a":"b"} , "c":{}})", R"({ "c":{}})", {{"a", "b"}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto m = parse("r = f32[] negate(f32[] p), backend_config=" + std::string(c.text));
    ASSERT_TRUE(m);
    EXPECT_EQ(m->entry()->root()->annotations().backend_config, c.rest);
    EXPECT_EQ(m->entry()->root()->annotations().decisions, c.decisions);
    EXPECT_TRUE(equal(*m, *parse(print(*m)))) << print(*m);
  }
  // Any text together with decisions.
  for (const std::string_view rest :
       {"", "plain", "{}", "{ }", "{ \"a\":1}", "{\"a\":1}", "{x = 1}", "not { balanced", "a\nb\"'\\"}) {
    auto m = parse("r = f32[] negate(f32[] p)");
    hlo::Annotations& a = m->entry()->root()->mutable_annotations();
    a.backend_config = rest;
    a.decisions = {{"plan", "in place"}, {"", "empty\tkey"}};
    EXPECT_TRUE(equal(*m, *parse(print(*m)))) << print(*m);
  }
}

TEST(Attributes, MetadataOfOtherVersions) {
  constexpr std::string_view kText =
      "r = f32[] negate(f32[] p), metadata={op_name=\"a\", preserve_layout=true sizes={1,2}}";
  const auto m = parse(kText);
  EXPECT_EQ(m->entry()->root()->annotations().metadata.unknown, "preserve_layout=true sizes={1,2}");
  EXPECT_TRUE(equal(*m, *parse(print(*m))));
  EXPECT_FALSE(parse_module(kText, {.lenient_metadata = false}));
}

TEST(Attributes, OnlyWhatAnOpcodeAccepts) {
  EXPECT_FALSE(parse_module("r = f32[4] negate(f32[4] p), index=0"));
  EXPECT_FALSE(parse_module("r = f32[4] negate(f32[4] p), to_apply={ p = f32[] parameter(0) }"));
}

}  // namespace
}  // namespace hloom::text
