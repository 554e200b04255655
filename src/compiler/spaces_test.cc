// Programs with memory spaces and splits in their layouts run as if they had none.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "compiler/compile.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "runtime/executor.h"
#include "runtime/read_only_memory.h"
#include "text/print.h"

namespace hloom::compiler {
namespace {

constexpr const char* kOffload = R"(HloModule m, entry_computation_layout={(f32[40]{0:S(5)}, f32[40]{0})->(f32[40]{0:S(5)}, f32[40]{0})}
body {
  p = (s32[], f32[40]{0:S(5)}, f32[40]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f32[40]{0:S(5)} get-tuple-element(p), index=1
  v = f32[40]{0} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  hd = f32[40]{0} copy(h)
  w = f32[40]{0:SC(0:16)} add(v, hd)
  nh = f32[40]{0:S(5)} custom-call(w), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true, frontend_attributes={_xla_buffer_placement="pinned_host"}
  ROOT t = (s32[], f32[40]{0:S(5)}, f32[40]{0}) tuple(j, nh, w)
}
cond {
  p = (s32[], f32[40]{0:S(5)}, f32[40]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[40]{0:S(5)} parameter(0)
  y = f32[40]{0} parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[40]{0:S(5)}, f32[40]{0}) tuple(z, x, y)
  l = (s32[], f32[40]{0:S(5)}, f32[40]{0}) while(t), condition=cond, body=body
  h = f32[40]{0:S(5)} get-tuple-element(l), index=1
  v = f32[40]{0} get-tuple-element(l), index=2
  cs = (f32[40]{0:S(2)}, f32[40]{0}, u32[]) copy-start(v)
  cd = f32[40]{0:S(2)} copy-done(cs)
  k = f32[2]{0:S(3)} constant({1, 2})
  n = f32[40]{0:S(1)} reverse(cd), dimensions={0}
  m = f32[40]{0:S(2)} dynamic-update-slice(n, k, z)
  o = f32[40]{0} reverse(m), dimensions={0}
  ROOT r = (f32[40]{0:S(5)}, f32[40]{0}) tuple(h, o)
})";

// The text without memory spaces and splits.
std::string without_places(std::string text) {
  for (std::size_t at; (at = text.find(":S")) != std::string::npos;) {
    const std::size_t open = text.find('(', at), end = text.find(')', at);
    text.erase(at, end + 1 - at);
    if (open != at + 2 && open != at + 3) ADD_FAILURE() << "no place: " << text.substr(at);
    while (text.compare(at, 2, "S(") == 0 || text.compare(at, 3, "SC(") == 0) text.erase(at, text.find(')', at) + 1 - at);
  }
  return text;
}

std::vector<float> run(std::string text, bool with_places) {
  if (!with_places) text = without_places(std::move(text));
  const auto program = Executable::compile(text);
  EXPECT_TRUE(program) << program.error().message();
  if (!program) return {};
  std::vector<float> x(40), y(40), both(80);
  for (std::size_t n = 0; n < 40; ++n) {
    x[n] = static_cast<float>(n) / 7;
    y[n] = 3 - x[n];
  }
  const auto bytes = [](float* p) { return std::span(reinterpret_cast<std::byte*>(p), 160); };
  const std::vector<std::span<std::byte>> in = {bytes(x.data()), bytes(y.data())},
                                          out = {bytes(both.data()), bytes(both.data() + 40)};
  const auto done = program->run_into(in, out);
  EXPECT_TRUE(done) << done.error().message();
  return both;
}

TEST(Spaces, ProgramsRunAsIfTheyHadNone) { EXPECT_EQ(run(kOffload, true), run(kOffload, false)); }

TEST(Spaces, WhatIsWrittenMayNotBeWhereConstantsAre) {
  const auto program = Executable::compile("HloModule m\nENTRY e { x = f32[8] parameter(0) y = f32[8]{0:S(3)} negate(x) ROOT z = f32[8] abs(y) }");
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message(), testing::HasSubstr("y: a negate writes its result, and memory space 3"));
}

// A program with a constant of `count` numbers 0, 1, 2 …, and the number 7.
std::string with_constant(std::int64_t count) {
  std::string elements = "0";
  for (std::int64_t n = 1; n < count; ++n) elements += ", " + std::to_string(n);
  const std::string shape = "f32[" + std::to_string(count) + "]";
  return "HloModule m\nENTRY e { x = " + shape + "{0} parameter(0) k = " + shape + "{0:S(3)} constant({" + elements +
         "}) s = f32[2]{0:S(3)} constant({7, 8}) a = " + shape + " add(x, k) ROOT t = (" + shape +
         ", f32[2], f32[2]) tuple(a, s, s) }";
}

Compiled compiled(const std::string& text) {
  auto module = read_program(text, {});
  EXPECT_TRUE(module) << module.error().message();
  auto program = compile(*std::move(module));
  EXPECT_TRUE(program) << program.error().message();
  return *std::move(program);
}

TEST(Spaces, OneCopyOfAConstantIsLeft) {
  const Compiled c = compiled(with_constant(5000));
  std::int64_t bytes = 0, large = 0;
  for (const auto& constant : c.program.constants) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(constant.data()) % 64, 0u);
    bytes += std::ssize(constant);
  }
  EXPECT_EQ(bytes, 4 * 5000 + 8);
  for (const hlo::Instruction& i : c.module->entry()->instructions()) {
    if (i.opcode() != hlo::Opcode::Constant || i.shape().num_elements() != 5000) continue;
    ++large;
    EXPECT_TRUE(i.literal().is_released());
    EXPECT_THAT(text::print(*c.module), testing::HasSubstr("constant({...})"));
  }
  EXPECT_EQ(large, 1);
  EXPECT_EQ(std::static_pointer_cast<const runtime::ReadOnlyMemory>(c.program.constant_memory)->mapped_bytes(), 20480);
}

// With a cache, processes share large constants; small ones stay where they were.
TEST(Spaces, LargeConstantsAreMappedFromTheCache) {
  std::string folder = testing::TempDir() + "/hloom-constants-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string text = with_constant(20000);
  for (int process = 0; process < 2; ++process) {
    auto module = read_program(text, {});
    Options options;
    options.cache_folder = folder;
    auto c = compile(*std::move(module), options);
    ASSERT_TRUE(c) << c.error().message();
    EXPECT_THAT(c->cache_problems, testing::IsEmpty());
    ASSERT_EQ(c->program.kept.size(), 1u);
    EXPECT_EQ(std::static_pointer_cast<const runtime::ReadOnlyMemory>(c->program.constant_memory)->mapped_bytes(), 4096);
    std::vector<std::int64_t> sizes;
    for (const auto& constant : c->program.constants) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(constant.data()) % 64, 0u);
      sizes.push_back(std::ssize(constant));
    }
    EXPECT_THAT(sizes, testing::UnorderedElementsAre(80000, 8));
    const auto executor = runtime::Executor::create(std::move(c->program));
    ASSERT_TRUE(executor) << executor.error().message();
    std::vector<float> x(20000, 1), a(20000), s(2), t(2);
    const auto bytes = [](std::vector<float>& v) { return std::as_writable_bytes(std::span(v)); };
    const std::vector<std::span<std::byte>> in = {bytes(x)}, out = {bytes(a), bytes(s), bytes(t)};
    ASSERT_TRUE((*executor)->execute(in, out));
    EXPECT_EQ(a[19999], 20000);
    EXPECT_EQ(s[1], 8);
  }
  std::filesystem::remove_all(folder);
}

TEST(Spaces, ConstantsCountAsMemory) {
  const auto program = Executable::compile(with_constant(5000));
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->memory().constant_bytes, 20008);
}

// A kernel that writes to what it is given to read.
void writes_its_operand(void* const* buffers, std::int64_t, std::int64_t, void*) {
  for (int n = 0; n < 3; ++n) static_cast<float*>(buffers[n])[1] = 3;
}

TEST(SpacesDeathTest, AKernelThatWritesToAConstantEndsTheProcess) {
  Compiled c = compiled(with_constant(5000));
  for (runtime::Step& step : c.program.steps)
    if (auto* call = std::get_if<runtime::Call>(&step.of)) call->function = writes_its_operand;
  auto executor = runtime::Executor::create(std::move(c.program));
  ASSERT_TRUE(executor) << executor.error().message();
  std::vector<float> x(5000), a(5000), s(2), t(2);
  const auto bytes = [](std::vector<float>& v) { return std::as_writable_bytes(std::span(v)); };
  const std::vector<std::span<std::byte>> in = {bytes(x)}, out = {bytes(a), bytes(s), bytes(t)};
  EXPECT_EXIT(static_cast<void>((*executor)->execute(in, out)), testing::KilledBySignal(SIGSEGV), "");
}

// Results of a program of arrays of 32-bit numbers, on so many threads.
std::vector<std::vector<float>> results(const std::string& text, int threads) {
  CompileOptions options;
  options.threads = threads;
  const auto program = Executable::compile(text, options);
  EXPECT_TRUE(program) << program.error().message();
  if (!program) return {};
  std::vector<std::vector<float>> in, out;
  for (const Shape& shape : program->parameter_shapes()) {
    in.emplace_back(static_cast<std::size_t>(shape.num_elements()));
    for (std::size_t n = 0; n < in.back().size(); ++n) in.back()[n] = static_cast<float>((n * 7919 + in.size()) % 1000) / 8;
  }
  for (const Shape& shape : program->result_shapes()) out.emplace_back(static_cast<std::size_t>(shape.num_elements()));
  std::vector<std::span<std::byte>> inputs, outputs;
  for (auto& array : in) inputs.push_back(std::as_writable_bytes(std::span(array)));
  for (auto& array : out) outputs.push_back(std::as_writable_bytes(std::span(array)));
  for (int round = 0; round < 3; ++round) {
    const auto done = program->run_into(inputs, outputs);
    EXPECT_TRUE(done) << done.error().message();
  }
  return out;
}

void expect_places_change_nothing(const std::string& text) {
  const auto want = results(without_places(text), 1);
  for (const int threads : {1, 2, 3, 4}) EXPECT_EQ(results(text, threads), want) << threads << " threads\n" << text;
}

// A loop that works with one window of an array in host memory after the other, from the last to the first.
std::string streaming(int trips) {
  const std::string array = "f32[8,150,120]{2,1,0:S(5)}", state = "(s32[], f32[150,120]{1,0}, " + array + ")";
  return "HloModule m\nbody {\nq = " + state + " parameter(0) i = s32[] get-tuple-element(q), index=0\n"
         "x = f32[150,120] get-tuple-element(q), index=1 h = " + array + " get-tuple-element(q), index=2\n"
         "z = s32[] constant(0) one = s32[] constant(1) j = s32[] subtract(i, one)\n"
         "s = f32[1,150,120]{2,1,0:S(5)} dynamic-slice(h, i, z, z), dynamic_slice_sizes={1,150,120}\n"
         "c = (f32[1,150,120], f32[1,150,120]{2,1,0:S(5)}, u32[]) copy-start(s) w = f32[1,150,120] copy-done(c)\n"
         "m = f32[150,120] reshape(w) a = f32[150,120] subtract(x, m) b = f32[150,120] reverse(a), dimensions={0}\n"
         "y = f32[150,120] maximum(b, m) ROOT t = " + state + " tuple(j, y, h) }\n"
         "cond {\nq = " + state + " parameter(0) i = s32[] get-tuple-element(q), index=0 n = s32[] constant(" +
         std::to_string(7 - trips) + ") ROOT c = pred[] compare(i, n), direction=GT }\n"
         "ENTRY e {\nx = f32[150,120] parameter(0) h = " + array + " parameter(1) z = s32[] constant(7)\n"
         "t = " + state + " tuple(z, x, h) l = " + state + " while(t), condition=cond, body=body\n"
         "ROOT r = f32[150,120] get-tuple-element(l), index=1 }";
}

// Also windows that would lie outside, and the one that is fetched behind the last.
TEST(Spaces, WindowsFetchedAheadAreThoseOfTheirIteration) {
  for (const int trips : {1, 2, 3, 7, 8, 10}) expect_places_change_nothing(streaming(trips));
}

int calls_begun(const runtime::Steps& steps) {
  int count = 0;
  for (const runtime::Step& step : steps) {
    const auto* start = std::get_if<runtime::Start>(&step.of);
    if (start != nullptr && std::holds_alternative<runtime::Call>(start->of)) ++count;
    if (const auto* loop = std::get_if<runtime::While>(&step.of)) count += calls_begun(loop->body);
  }
  return count;
}

// Two buffers that change places, not one that is copied to the other.
TEST(Spaces, TheNextWindowIsFetchedBesideTheWorkWithThisOne) {
  const Compiled c = compiled(streaming(8));
  EXPECT_EQ(calls_begun(c.program.steps), 2) << "two steps a round";
  for (const buffers::InPlaceDecision& d : c.assignment.decisions())
    EXPECT_TRUE(d.in_place || d.kind != buffers::InPlaceDecision::Kind::LoopCarry) << d.at << " " << d.leaf;
}

// A sum, a transpose and a reduce, cut in all dimensions.
TEST(Splits, ChangeNoValue) {
  for (const char* split : {"0:100", "0:1,2,699", "1:100", "1:7,8,150,299"}) {
    const std::string s = std::string(":SC(") + split + ")";
    const std::string a = "f32[700,300]{1,0" + s + "}", t = "f32[300,700]{1,0:SC(0:33,200)}";
    expect_places_change_nothing("HloModule m\nadd { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) }\n"
                                 "ENTRY e { x = f32[700,300]{1,0} parameter(0) y = f32[300,700]{1,0} parameter(1) v = " + a +
                                 " sine(x) w = " + t + " transpose(v), dimensions={1,0} z = f32[] constant(0) "
                                 "u = f32[700]{0:SC(0:350)} reduce(v, z), dimensions={1}, to_apply=add "
                                 "m2 = " + t + " multiply(w, y) ROOT r = (" + t + ", f32[700], " + a + ") tuple(m2, u, v) }");
  }
}

TEST(Splits, CutTheWorkOfTheProgram) {
  const Compiled c = compiled("HloModule m\nENTRY e { x = f32[700,300]{1,0:SC(0:100,400)} parameter(0) "
                              "ROOT v = f32[700,300]{1,0:SC(0:100,400)} exponential(x) }");
  ASSERT_EQ(c.kernels.size(), 1u);
  ASSERT_EQ(c.kernels[0].cuts.size(), 2u);
  const auto& call = std::get<runtime::Call>(c.program.steps.at(0).of);
  EXPECT_EQ(call.cuts, c.kernels[0].cuts);
  EXPECT_EQ(call.split_bytes, (std::vector<std::vector<std::int64_t>>{{120'000, 480'000}, {120'000, 480'000}}));
}

// Two arrays come from the host while others are computed, once and in each step of a loop.
constexpr const char* kFetches = R"(HloModule m
body {
  p = (s32[], f32[40000]{0:S(5)}, f32[40000]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f32[40000]{0:S(5)} get-tuple-element(p), index=1
  v = f32[40000]{0} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  cs = (f32[40000]{0}, f32[40000]{0:S(5)}, u32[]) copy-start(h)
  s = f32[40000]{0} sine(v)
  w = f32[40000]{0} reverse(s), dimensions={0}
  cd = f32[40000]{0} copy-done(cs)
  g = f32[40000]{0} reverse(cd), dimensions={0}
  n = f32[40000]{0} add(w, g)
  ROOT t = (s32[], f32[40000]{0:S(5)}, f32[40000]{0}) tuple(j, h, n)
}
cond {
  p = (s32[], f32[40000]{0:S(5)}, f32[40000]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[40000]{0:S(5)} parameter(0)
  y = f32[40000]{0} parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[40000]{0:S(5)}, f32[40000]{0}) tuple(z, x, y)
  l = (s32[], f32[40000]{0:S(5)}, f32[40000]{0}) while(t), condition=cond, body=body
  v = f32[40000]{0} get-tuple-element(l), index=2
  cs = (f32[40000]{0:S(2)}, f32[40000]{0}, u32[]) copy-start(v)
  s = f32[40000]{0} sine(v)
  w = f32[40000]{0} reverse(s), dimensions={0}
  cd = f32[40000]{0:S(2)} copy-done(cs)
  g = f32[40000]{0} reverse(cd), dimensions={0}
  ROOT r = (f32[40000]{0}, f32[40000]{0}) tuple(w, g)
})";

TEST(Spaces, CopiesGoOnBesideOtherWorkAndChangeNoValue) {
  const std::string steps = runtime::to_string(compiled(kFetches).program);
  EXPECT_THAT(steps, testing::HasSubstr("start 0: copy"));
  EXPECT_THAT(steps, testing::HasSubstr("start 1: copy"));
  EXPECT_THAT(steps, testing::HasSubstr("finish 1"));
  expect_places_change_nothing(kFetches);
}

}  // namespace
}  // namespace hloom::compiler
