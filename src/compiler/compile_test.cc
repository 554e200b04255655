// What holds of whole programs whatever they compute: loops move only what they change, regions and threads change no bit, the
// check finds a wrong kernel, the API keeps its promises.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "arrays/compare.h"
#include "compiler/check.h"
#include "compiler/compile.h"
#include "compiler/layout_bytes.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "interp/interpret.h"
#include "runtime/executor.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

std::string updating_loop(std::int64_t n) {
  const std::string s = std::to_string(n);
  return "HloModule updating, input_output_alias={ {}: (0, {}, may-alias) }\n"
         "body { c = (s32[], f32[" + s + "], s32[]) parameter(0)\n"
         "  i = s32[] get-tuple-element(c), index=0\n  x = f32[" + s + "] get-tuple-element(c), index=1\n"
         "  n = s32[] get-tuple-element(c), index=2\n"
         "  seven = s32[] constant(7)\n  at = s32[] multiply(i, seven)\n"
         "  w = f32[8] dynamic-slice(x, at), dynamic_slice_sizes={8}\n  one = f32[] constant(1)\n"
         "  ones = f32[8] broadcast(one), dimensions={}\n  u = f32[8] add(w, ones)\n"
         "  y = f32[" + s + "] dynamic-update-slice(x, u, at)\n  k = s32[] constant(1)\n  j = s32[] add(i, k)\n"
         "  ROOT r = (s32[], f32[" + s + "], s32[]) tuple(j, y, n) }\n"
         "condition { c = (s32[], f32[" + s + "], s32[]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n"
         "  n = s32[] get-tuple-element(c), index=2\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
         "ENTRY main { x = f32[" + s + "] parameter(0)\n  n = s32[] parameter(1)\n  z = s32[] constant(0)\n"
         "  t = (s32[], f32[" + s + "], s32[]) tuple(z, x, n)\n"
         "  w = (s32[], f32[" + s + "], s32[]) while(t), condition=condition, body=body\n"
         "  ROOT r = f32[" + s + "] get-tuple-element(w), index=1 }\n";
}

Compiled compile_text(const std::string& text, const Options& options = {}) {
  auto module = read_program(text);
  EXPECT_TRUE(module) << module.error().message();
  auto compiled = compile(*std::move(module), options);
  EXPECT_TRUE(compiled) << compiled.error().message();
  return *std::move(compiled);
}

// Bytes that one iteration of the module's loops copies or writes, by the plan.
std::int64_t bytes_in_loops(const hlo::Module& module) {
  std::int64_t bytes = 0;
  for (const hlo::Computation& c : module.computations()) {
    if (&c == module.entry()) continue;
    for (const Instruction& i : c.instructions()) {
      if (i.opcode() == Opcode::Copy) bytes += i.shape().size_bytes();
      if (i.opcode() != Opcode::Fusion) continue;
      const Instruction& root = *i.called(0)->root();
      bytes += root.opcode() == Opcode::DynamicUpdateSlice ? root.operand(1)->shape().size_bytes() : i.shape().size_bytes();
    }
  }
  return bytes;
}

TEST(Compile, ALoopMovesOnlyItsWindow) {
  Options options;
  options.generate_code = false;
  const std::int64_t small = bytes_in_loops(*compile_text(updating_loop(10'000), options).module);
  const std::int64_t large = bytes_in_loops(*compile_text(updating_loop(10'000'000), options).module);
  EXPECT_EQ(small, large);
  EXPECT_LE(large, 100);  // the window, what is added to it, counters
}

TEST(Compile, ADonatedArrayIsUpdatedInPlace) {
  auto program = Executable::compile(updating_loop(1000));
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->donated_parameter(0), 0);
  EXPECT_LT(program->memory().temp_bytes, 1000);
  std::vector<float> x(1000, 2);
  std::int32_t n = 10;
  const std::span<std::byte> array(reinterpret_cast<std::byte*>(x.data()), 4000);
  const std::span<std::byte> inputs[] = {array, {reinterpret_cast<std::byte*>(&n), 4}};
  const std::span<std::byte> outputs[] = {array};
  const auto done = program->run(inputs, outputs);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(x[0], 3);
  EXPECT_EQ(x[7], 4);  // windows overlap by one
  EXPECT_EQ(x[71], 2);
}

TEST(Compile, ADonatedArrayElsewhereIsKept) {
  auto program = Executable::compile(updating_loop(100));
  ASSERT_TRUE(program);
  std::vector<float> x(100, 2), y(100, 0);
  std::int32_t n = 3;
  const std::span<std::byte> inputs[] = {{reinterpret_cast<std::byte*>(x.data()), 400}, {reinterpret_cast<std::byte*>(&n), 4}};
  const std::span<std::byte> outputs[] = {{reinterpret_cast<std::byte*>(y.data()), 400}};
  ASSERT_TRUE(program->run(inputs, outputs));
  EXPECT_EQ(x[0], 2);
  EXPECT_EQ(y[0], 3);
  const std::span<std::byte> overlapping[] = {{reinterpret_cast<std::byte*>(x.data()) + 4, 396}};
  EXPECT_FALSE(program->run(inputs, overlapping));
}

TEST(Compile, ErrorsNameTheInstructionAndThePlace) {
  const auto unknown = Executable::compile("ENTRY e { a = f32[2] parameter(0)\n  ROOT b = f32[2] frobnicate(a) }");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message().find("2:"), std::string::npos) << unknown.error().message();
  const auto no_kernel =
      Executable::compile("ENTRY e { a = f32[2,2] parameter(0)\n  ROOT b = f32[2,2] custom-call(a), custom_call_target=\"mine\" }");
  ASSERT_FALSE(no_kernel);
  EXPECT_EQ(no_kernel.error().code(), Code::Unimplemented);
  EXPECT_NE(no_kernel.error().message().find("b:"), std::string::npos) << no_kernel.error().message();
}

TEST(Compile, WhatIsNotSupportedIsRefusedByName) {
  const auto refusal = [](const char* text) {
    const auto program = Executable::compile(text);
    EXPECT_FALSE(program) << text;
    return program ? std::string() : program.error().message();
  };
  EXPECT_NE(refusal("ENTRY e { a = f32[<=4] parameter(0)\n ROOT b = f32[<=4] negate(a) }").find("a: "), std::string::npos);
  EXPECT_NE(refusal("ENTRY e { a = s4[8]{0:E(4)} parameter(0)\n ROOT b = s4[8]{0:E(4)} negate(a) }").find("a: "),
            std::string::npos);
  EXPECT_NE(refusal("ENTRY e { a = f32[8]{0:S(7)} parameter(0)\n ROOT b = f32[8] negate(a) }").find("memory space 7"),
            std::string::npos);
  EXPECT_NE(refusal("HloModule m, replica_count=2\nENTRY e { a = f32[8] parameter(0)\n ROOT b = f32[8] negate(a) }")
                .find("one device"),
            std::string::npos);
}

const char* const kMixed =
    "HloModule mixed\n"
    "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    "body { c = (s32[], f32[64,300]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n"
    "  x = f32[64,300] get-tuple-element(c), index=1\n  e = f32[64,300] tanh(x)\n  z = f32[] constant(0)\n"
    "  s = f32[64] reduce(e, z), dimensions={1}, to_apply=add\n  b = f32[64,300] broadcast(s), dimensions={0}\n"
    "  y = f32[64,300] subtract(x, b)\n  k = s32[] constant(1)\n  j = s32[] add(i, k)\n"
    "  ROOT r = (s32[], f32[64,300]) tuple(j, y) }\n"
    "condition { c = (s32[], f32[64,300]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n"
    "  n = s32[] constant(3)\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
    "yes { p = f32[64,300] parameter(0)\n ROOT q = f32[64,300] negate(p) }\n"
    "no { p = f32[64,300] parameter(0)\n ROOT q = f32[64,300] exponential(p) }\n"
    "ENTRY main { x = f32[64,300] parameter(0)\n  z = s32[] constant(0)\n  t = (s32[], f32[64,300]) tuple(z, x)\n"
    "  w = (s32[], f32[64,300]) while(t), condition=condition, body=body\n  y = f32[64,300] get-tuple-element(w), index=1\n"
    "  f = f32[1,1] slice(y), slice={[0:1], [0:1]}\n  g = f32[] reshape(f)\n  zero = f32[] constant(0)\n"
    "  p = pred[] compare(g, zero), direction=LT\n"
    "  d = f32[64,300] conditional(p, y, y), true_computation=yes, false_computation=no\n"
    "  ROOT r = (f32[64,300], f32[64]) tuple(d, q)\n}\n";

std::string mixed() {
  std::string text = kMixed;
  const std::string root = "  ROOT r = (f32[64,300], f32[64])";
  text.insert(text.find(root), "  q = f32[64] reduce(d, zero), dimensions={1}, to_apply=add\n");
  return text;
}

std::vector<std::byte> run_bytes(const std::string& text, const Literal& x, const Options& options, int threads) {
  Compiled compiled = compile_text(text, options);
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::span<std::byte>> results;
  for (const runtime::Port& port : compiled.program.results) outputs.emplace_back(static_cast<std::size_t>(port.size_bytes));
  for (auto& o : outputs) results.push_back(o);
  Literal copy = x;
  const std::span<std::byte> inputs[] = {copy.mutable_bytes()};
  auto executor = runtime::Executor::create(std::move(compiled.program));
  EXPECT_TRUE(executor);
  runtime::ThreadPool pool(threads);
  const auto done = (*executor)->execute(inputs, results, pool);
  EXPECT_TRUE(done) << done.error().message();
  std::vector<std::byte> all;
  for (const auto& o : outputs) all.insert(all.end(), o.begin(), o.end());
  return all;
}

Literal random_array(Shape shape) {
  Literal x(std::move(shape));
  std::mt19937 random(7);
  for (float& f : x.mutable_data<float>()) f = std::uniform_real_distribution<float>(-1, 1)(random);
  return x;
}

TEST(Compile, RegionsAndThreadsChangeNoBit) {
  const Literal x = random_array(Shape::array(DType::F32, {64, 300}));
  Options with, without;
  without.regions = false;
  const auto reference = run_bytes(mixed(), x, with, 1);
  EXPECT_EQ(reference, run_bytes(mixed(), x, without, 1));
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(reference, run_bytes(mixed(), x, with, threads)) << threads;
    EXPECT_EQ(reference, run_bytes(mixed(), x, without, threads)) << threads;
  }
}

TEST(Check, IsCleanAndSeesInsideKernels) {
  auto module = read_program(mixed());
  ASSERT_TRUE(module);
  const Literal x = random_array(Shape::array(DType::F32, {64, 300}));
  const auto report = check(*std::move(module), std::span(&x, 1), {.threads = 0, .every_run = true});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << report->differences[0].message;
  // The hyperbolic tangent is inside the kernel of the reduce; it is seen in each of three iterations.
  EXPECT_GE(report->checks, 3 * 3 + 2);
}

}  // namespace
}  // namespace hloom::compiler
