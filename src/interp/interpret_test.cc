// How programs are run: limits, errors, one instruction at a time, several devices.

#include "interp/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "arrays/conformance.h"
#include "text/parse.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using testing::HasSubstr;

Literal scalar(std::int32_t x) {
  Literal literal(Shape::scalar(DType::S32));
  literal.mutable_data<std::int32_t>()[0] = x;
  return literal;
}

std::unique_ptr<hlo::Module> parsed(const std::string& text) {
  auto module = text::parse_module(text);
  EXPECT_TRUE(module) << module.error().message();
  return module ? std::move(*module) : nullptr;
}

std::string error_of(const std::string& text, const std::vector<Literal>& arguments, const Options& options = {}) {
  const auto result = interpret(*parsed(text), arguments, options);
  return result ? "no error" : std::string(name(result.error().code())) + ": " + result.error().message();
}

// What the machine computes on the way, evaluate_instruction computes too from the same operands.
TEST(EvaluateInstruction, EqualsTheRunOfTheProgram) {
  const std::string folder = HLOOM_SOURCE_DIR "/tests/conformance";
  std::int64_t compared = 0;
  for (const char* opcode : {"add", "while", "conditional", "fusion", "reduce", "sort", "scatter", "set-dimension-size",
                             "rng-bit-generator", "async-start", "tuple", "convolution"}) {
    const auto cases = arrays::read_conformance(folder, opcode);
    ASSERT_TRUE(cases) << cases.error().message();
    for (const arrays::ConformanceCase& c : *cases) {
      const auto module = parsed(c.text);
      std::vector<std::pair<const hlo::Instruction*, Literal>> seen;
      const Observer observer = [&](std::int64_t, const hlo::Instruction& i, const Literal& result) {
        if (i.parent() == module->entry()) seen.emplace_back(&i, result);
      };
      ASSERT_TRUE(interpret(*module, c.arguments, {.observer = &observer}));
      const auto value_of = [&](const hlo::Instruction* i) {
        if (i->opcode() == hlo::Opcode::Parameter) return c.arguments[static_cast<std::size_t>(i->parameter_number())];
        if (i->opcode() == hlo::Opcode::Constant) return i->literal();
        for (const auto& [instruction, value] : seen)
          if (instruction == i) return value;
        return Literal();
      };
      for (const auto& [instruction, value] : seen) {
        std::vector<Literal> operands;
        bool dynamic = false;  // run-time sizes are not part of a literal
        for (const hlo::Instruction* operand : instruction->operands()) {
          operands.push_back(value_of(operand));
          dynamic |= operand->shape().has_dynamic_dims();
        }
        if (dynamic) continue;
        const auto again = evaluate_instruction(*instruction, operands);
        ASSERT_TRUE(again) << again.error().message();
        EXPECT_EQ(*again, value) << c.name << " " << instruction->name();
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

constexpr const char* kForever = R"(
HloModule m
body { p = s32[] parameter(0) one = s32[] constant(1) ROOT q = s32[] add(p, one) }
condition { p = s32[] parameter(0) ROOT c = pred[] constant(true) }
ENTRY e { x = s32[] parameter(0) ROOT w = s32[] while(x), condition=condition, body=body }
)";

TEST(Limits, StopALoopWithoutEnd) {
  EXPECT_THAT(error_of(kForever, {scalar(0)}, {.max_steps = 1000}), HasSubstr("ResourceExhausted: q"));
}

TEST(Limits, RefuseArraysThatAreTooLarge) {
  const char* text =
      "HloModule m\nENTRY e { x = s32[] parameter(0) ROOT b = s32[1000000,1000000] broadcast(x), dimensions={} }";
  EXPECT_THAT(error_of(text, {scalar(0)}), HasSubstr("ResourceExhausted: b: s32[1000000,1000000] is larger than"));
}

// A chain of calls as deep as it may be, and one that is deeper: the stack holds.
TEST(Limits, RefuseCallsThatNestTooDeeply) {
  const auto chain = [](int depth) {
    std::ostringstream text;
    text << "HloModule m\nf0 { p = s32[] parameter(0) ROOT q = s32[] negate(p) }\n";
    for (int i = 1; i < depth; ++i)
      text << "f" << i << " { p = s32[] parameter(0) ROOT c = s32[] call(p), to_apply=f" << i - 1 << " }\n";
    text << "ENTRY e { x = s32[] parameter(0) ROOT c = s32[] call(x), to_apply=f" << depth - 1 << " }";
    auto module = text::parse_module(std::move(text).str(), {.max_depth = 2000});
    EXPECT_TRUE(module) << module.error().message();
    const std::vector<Literal> arguments{scalar(1)};
    const auto result = interpret(**module, arguments);
    return result ? "no error" : result.error().message();
  };
  EXPECT_EQ(chain(499), "no error");
  EXPECT_THAT(chain(500), HasSubstr("f0: calls nest deeper than 500"));
}

TEST(Errors, NameTheInstruction) {
  EXPECT_THAT(error_of("HloModule m\nENTRY e { x = s32[] parameter(0) ROOT c = s32[] custom-call(x), "
                       "custom_call_target=\"nobody\" }",
                       {scalar(0)}),
              HasSubstr("Unimplemented: c: nobody knows the custom call target nobody"));
  EXPECT_THAT(error_of("HloModule m\nENTRY e { t = token[] after-all() ROOT i = (s32[], token[]) infeed(t) }", {}),
              HasSubstr("FailedPrecondition: i: the run has no host for its infeed"));
  EXPECT_THAT(error_of(kForever, {}), HasSubstr("takes 1 arguments, found 0"));
  EXPECT_THAT(error_of(kForever, {Literal(Shape::array(DType::S32, {2}))}),
              HasSubstr("argument 0 is s32[2], expected s32[]"));
  EXPECT_THAT(error_of("HloModule m\nENTRY e { x = s32[4] parameter(0) n = s32[] parameter(1) "
                       "ROOT d = s32[<=4] set-dimension-size(x, n), dimensions={0} }",
                       {Literal(Shape::array(DType::S32, {4})), scalar(5)}),
              HasSubstr("InvalidArgument: d: sets dimension 0 of s32[4] to size 5"));
}

// Runs the text on R × P devices; device k gets {10·k, 10·k + 1, …} of n elements. Gives each device's elements.
std::vector<std::vector<std::int32_t>> on_devices(const std::string& text, std::int64_t replicas,
                                                  std::int64_t partitions, std::int64_t n) {
  const std::string header = "HloModule m, replica_count=" + std::to_string(replicas) +
                             ", num_partitions=" + std::to_string(partitions) + "\n";
  const auto module = parsed(header + text);
  std::vector<std::vector<Literal>> arguments;
  for (std::int64_t k = 0; k < replicas * partitions; ++k) {
    Literal x(Shape::array(DType::S32, {n}));
    for (std::int64_t i = 0; i < n; ++i)
      x.mutable_data<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(10 * k + i);
    arguments.push_back({x});
  }
  const auto results = interpret_devices(*module, arguments, {.replicas = replicas, .partitions = partitions});
  EXPECT_TRUE(results) << results.error().message();
  std::vector<std::vector<std::int32_t>> out;
  for (const Literal& result : *results)
    out.emplace_back(result.data<std::int32_t>().begin(), result.data<std::int32_t>().end());
  return out;
}

using Rows = std::vector<std::vector<std::int32_t>>;
const std::string kAdd = "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n";

TEST(Devices, ReduceInEachGroupMode) {
  const auto all_reduce = [](const std::string& attributes) {
    return on_devices(
        kAdd + "ENTRY e { x = s32[1] parameter(0) ROOT r = s32[1] all-reduce(x), to_apply=add, " + attributes + " }", 2,
        2, 1);
  };
  // Devices hold 0, 10, 20, 30; device = replica · 2 + partition.
  EXPECT_EQ(all_reduce("replica_groups={}"), (Rows{{20}, {40}, {20}, {40}}));
  EXPECT_EQ(all_reduce("replica_groups={{0},{1}}"), (Rows{{0}, {10}, {20}, {30}}));
  EXPECT_EQ(all_reduce("replica_groups={{0},{1}}, channel_id=1"), (Rows{{10}, {10}, {50}, {50}}));
  EXPECT_EQ(all_reduce("replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true"),
            (Rows{{30}, {30}, {30}, {30}}));
}

TEST(Devices, GatherScatterAndExchange) {
  EXPECT_EQ(on_devices("ENTRY e { x = s32[2] parameter(0) ROOT r = s32[6] all-gather(x), dimensions={0}, "
                       "replica_groups={{2,0,1}} }",
                       3, 1, 2),
            (Rows(3, {20, 21, 0, 1, 10, 11})));
  EXPECT_EQ(on_devices(kAdd + "ENTRY e { x = s32[4] parameter(0) ROOT r = s32[2] reduce-scatter(x), dimensions={0}, "
                              "replica_groups={{1,0}}, to_apply=add }",
                       2, 1, 4),
            (Rows{{14, 16}, {10, 12}}));
  EXPECT_EQ(on_devices("ENTRY e { x = s32[4] parameter(0) ROOT r = s32[4] all-to-all(x), dimensions={0}, "
                       "replica_groups={{0,1}} }",
                       2, 1, 4),
            (Rows{{0, 1, 10, 11}, {2, 3, 12, 13}}));
  EXPECT_EQ(on_devices("ENTRY e { x = s32[1] parameter(0) ROOT r = s32[1] collective-permute(x), channel_id=1, "
                       "source_target_pairs={{0,1},{1,2}} }",
                       1, 3, 1),
            (Rows{{0}, {0}, {10}}));
  EXPECT_EQ(on_devices("ENTRY e { x = s32[1] parameter(0) ROOT r = s32[1] collective-broadcast(x), "
                       "replica_groups={{2,0}} }",
                       3, 1, 1),
            (Rows{{20}, {0}, {20}}));
}

TEST(Devices, SendRowsOfAnySize) {
  // Device k sends row 0 to device 0 and row 1 to device 1; they are stored from place k on.
  EXPECT_EQ(
      on_devices(R"(ENTRY e { x = s32[2] parameter(0) z = s32[] constant(-1) o = s32[2] broadcast(z), dimensions={}
      i = s32[2] constant({0, 1}) n = s32[2] constant({1, 1}) p = u32[] partition-id() q = s32[] convert(p)
      at = s32[2] broadcast(q), dimensions={}
      ROOT r = s32[2] ragged-all-to-all(x, o, i, n, at, n), channel_id=1, replica_groups={{0,1}} })",
                 1, 2, 2),
      (Rows{{0, 10}, {1, 11}}));
}

// Collectives meet in loops and branches, as often as they come.
TEST(Devices, MeetInLoops) {
  EXPECT_EQ(on_devices(kAdd + R"(
body { p = (s32[1], s32[]) parameter(0) x = s32[1] get-tuple-element(p), index=0 i = s32[] get-tuple-element(p), index=1
       y = s32[1] all-reduce(x), replica_groups={}, to_apply=add one = s32[] constant(1) j = s32[] add(i, one)
       ROOT t = (s32[1], s32[]) tuple(y, j) }
condition { p = (s32[1], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=1 n = s32[] constant(3)
            ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = s32[1] parameter(0) z = s32[] constant(0) t = (s32[1], s32[]) tuple(x, z)
          w = (s32[1], s32[]) while(t), condition=condition, body=body ROOT r = s32[1] get-tuple-element(w), index=0 })",
                       2, 1, 1),
            (Rows{{40}, {40}}));
}

// The text has the wait before the send, as other programs may that run: nothing says that the send needs it.
TEST(Devices, SendBeforeTheyWait) {
  const std::string pairs = ", channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}";
  const std::string text = "ENTRY e { x = s32[2] parameter(0) t = token[] after-all() u = token[] after-all() n = s32[2] negate(x) "
                           "r = (s32[2], u32[], token[]) recv(t)" + pairs +
                           " d = (s32[2], token[]) recv-done(r), channel_id=1 y = s32[2] get-tuple-element(d), index=0 ";
  const std::string ends = pairs + " e = token[] send-done(s), channel_id=1 ROOT z = s32[2] add(x, y) }";
  EXPECT_EQ(on_devices(text + "s = (s32[2], u32[], token[]) send(n, u)" + ends, 1, 2, 2), (Rows{{-10, -10}, {10, 10}}));
  // Here it does.
  const auto module = parsed("HloModule m, num_partitions=2\n" + text + "s = (s32[2], u32[], token[]) send(y, u)" + ends);
  const Literal x(Shape::array(DType::S32, {2}));
  const auto results = interpret_devices(*module, std::vector<std::vector<Literal>>{{x}, {x}}, {.partitions = 2});
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().message(), HasSubstr("wait for each other in vain: device 0 at d"));
}

// By ranks, and rounded to bf16 once: step by step it would be 0.796875.
TEST(Devices, FoldNarrowFloatsInF32) {
  const auto module = parsed(R"(HloModule m, replica_count=3
add { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(a, b) }
ENTRY e { k = u32[] replica-id() i = s32[] convert(k) c = bf16[3] constant({3.421875, 0.12890625, -2.75})
          d = bf16[1] dynamic-slice(c, i), dynamic_slice_sizes={1}
          s = bf16[1] all-reduce(d), replica_groups={}, to_apply=add ROOT r = f32[1] convert(s) })");
  for (const bool sums_in_f64 : {true, false}) {
    const auto results = interpret_devices(*module, std::vector<std::vector<Literal>>(3), {.replicas = 3, .sums_in_f64 = sums_in_f64});
    ASSERT_TRUE(results) << results.error().message();
    for (const Literal& r : *results) EXPECT_EQ(r.data<float>()[0], 0.80078125f) << sums_in_f64;
  }
}

TEST(Devices, ThatWaitInVainAreAnError) {
  // Replica 0 takes part, replica 1 does not.
  const auto module = parsed("HloModule m, replica_count=2\n" + kAdd + R"(
yes { p = s32[] parameter(0) ROOT r = s32[] all-reduce(p), replica_groups={}, to_apply=add }
no { p = s32[] parameter(0) ROOT r = s32[] negate(p) }
ENTRY e { x = s32[] parameter(0) k = u32[] replica-id() i = s32[] convert(k)
          ROOT r = s32[] conditional(i, x, x), branch_computations={yes, no} })");
  const std::vector<std::vector<Literal>> arguments{{scalar(1)}, {scalar(2)}};
  const auto results = interpret_devices(*module, arguments, {.replicas = 2});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().code(), Code::InvalidArgument);
  EXPECT_THAT(results.error().message(), HasSubstr("wait for each other in vain: device 0 at r"));
}

TEST(Devices, GiveTheErrorOfTheOneThatFailed) {
  const auto module = parsed("HloModule m, replica_count=2\n" + kAdd + R"(
ENTRY e { x = s32[4] parameter(0) n = s32[] parameter(1) d = s32[<=4] set-dimension-size(x, n), dimensions={0}
          k = s32[] get-dimension-size(d), dimensions={0}
          ROOT r = s32[] all-reduce(k), replica_groups={}, to_apply=add })");
  const Literal x(Shape::array(DType::S32, {4}));
  const std::vector<std::vector<Literal>> arguments{{x, scalar(3)}, {x, scalar(9)}};
  const auto results = interpret_devices(*module, arguments, {.replicas = 2});
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().message(), HasSubstr("d: sets dimension 0"));
}

}  // namespace
}  // namespace hloom::interp
