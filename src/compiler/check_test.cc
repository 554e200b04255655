// Faults planted in kernels and between stages: what finds them names the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/bisect.h"
#include "compiler/check.h"
#include "compiler/read_program.h"

namespace hloom::compiler {
namespace {

using hlo::Literal;
using testing::HasSubstr;
using testing::StartsWith;

// Four times 2·x + 1.
constexpr const char* kLoop = R"(HloModule loop
cond { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  two = f32[] constant(2)
  twos = f32[4] broadcast(two), dimensions={}
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  m = f32[4] multiply(x, twos)
  a = f32[4] add(m, ones), metadata={op_name="jit(f)/add" source_file="model.py" source_line=12}
  k = s32[] constant(1)
  j = s32[] add(i, k)
  ROOT t = (s32[], f32[4]) tuple(j, a) }
ENTRY main {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  init = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(init), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
})";

std::unique_ptr<hlo::Module> parse(std::string_view text) {
  auto module = read_program(text);
  if (!module) ADD_FAILURE() << module.error().message();
  return module ? *std::move(module) : nullptr;
}

Literal floats(std::vector<float> values) {
  Literal literal(Shape::array(DType::F32, {static_cast<std::int64_t>(values.size())}));
  std::ranges::copy(values, literal.mutable_data<float>().begin());
  return literal;
}

// Lines of floats with this opcode get another.
void change(kernels::Kernel& kernel, kernels::Block& block, hlo::Opcode from, hlo::Opcode to) {
  for (kernels::Statement& s : block) {
    if (auto* line = std::get_if<kernels::Line>(&s.of)) {
      const DType type = kernel.values[static_cast<std::size_t>(line->result)].type;
      if (line->opcode == from && is_floating(type)) line->opcode = to;
    } else if (auto* loop = std::get_if<kernels::Loop>(&s.of)) {
      change(kernel, loop->body, from, to);
    } else if (auto* repeated = std::get_if<kernels::While>(&s.of)) {
      change(kernel, repeated->body, from, to);
    }
  }
}

CheckOptions with_fault(hlo::Opcode from, hlo::Opcode to) {
  CheckOptions options;
  options.compile.change_kernels = [=](std::vector<kernels::Kernel>& kernels) {
    for (kernels::Kernel& k : kernels) change(k, k.body, from, to);
  };
  return options;
}

TEST(Check, NamesTheInstructionThatIsMiscompiled) {
  const std::vector<Literal> x{floats({1, 2, 3, 4})};
  const auto clean = check(parse(kLoop), x);
  ASSERT_TRUE(clean) << clean.error().message();
  EXPECT_TRUE(clean->differences.empty()) << to_string(clean->differences[0]);

  const auto report = check(parse(kLoop), x, with_fault(hlo::Opcode::Add, hlo::Opcode::Subtract));
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_FALSE(report->differences.empty());
  const Difference& first = report->differences[0];
  EXPECT_THAT(first.what, StartsWith("add f32[4]"));
  EXPECT_EQ(first.source, "model.py:12 (jit(f)/add)");
  EXPECT_THAT(first.loops, StartsWith("iteration 0 of "));
  EXPECT_THAT(first.message, HasSubstr("1 instead of 3"));
  EXPECT_THAT(first.kernel, HasSubstr("fusion"));
  // The multiply before it is right, and is not named.
  for (const Difference& d : report->differences) EXPECT_THAT(d.what, StartsWith("add f32[4]"));
}

TEST(Check, SeesAFaultThatOnlySomeIterationsShow) {
  // 2·2 is 2+2; then it is 5.
  const std::vector<Literal> x{floats({2, 2, 2, 2})};
  const auto report = check(parse(kLoop), x, with_fault(hlo::Opcode::Multiply, hlo::Opcode::Add));
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_FALSE(report->differences.empty());
  EXPECT_THAT(report->differences[0].what, StartsWith("multiply f32[4]"));
  EXPECT_THAT(report->differences[0].loops, StartsWith("iteration 1 of "));
}

TEST(FirstNotFinite, NamesInstructionIterationAndSource) {
  const std::vector<Literal> x{floats({1, 1, 6e37F, 1})};  // 2x + 1 overflows in the third iteration
  const auto found = first_not_finite(parse(kLoop), x);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_TRUE(found->found);
  EXPECT_THAT(found->place.what, StartsWith("multiply f32[4]"));
  EXPECT_THAT(found->place.message, HasSubstr("element 2 is inf"));
  EXPECT_THAT(found->place.loops, StartsWith("iteration 2 of "));
}

TEST(FirstNotFinite, ConstantsAndArgumentsMakeNone) {
  constexpr const char* kMax = R"(HloModule m
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
  l = f32[] constant(-inf)
  ROOT r = f32[] reduce(x, l), dimensions={0}, to_apply=max
})";
  const auto none = first_not_finite(parse(kMax), std::vector{floats({1, 2, 3, 4})});
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_FALSE(none->found) << to_string(none->place);
  EXPECT_EQ(none->arguments, 0);
  const auto given =
      first_not_finite(parse(kMax), std::vector{floats({1, std::numeric_limits<float>::infinity(), 3, 4})});
  ASSERT_TRUE(given) << given.error().message();
  EXPECT_FALSE(given->found);
  EXPECT_EQ(given->arguments, 1);
}

constexpr const char* kSum = R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] add(x, x)
  ROOT r = f32[4] negate(y)
})";
constexpr const char* kWrongSum = R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] multiply(x, x)
  ROOT r = f32[4] negate(y)
})";

TEST(Bisect, NamesTheStageAfterWhichResultsPart) {
  const std::vector<std::vector<Literal>> x{{floats({1, 2, 3, 4})}};
  const std::vector<StageText> stages{{"first", kSum}, {"second", kWrongSum}, {"third", kWrongSum}};
  const auto found = bisect(*parse(kSum), stages, x);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->stage, "second");
  EXPECT_EQ(found->stages, 2);
  EXPECT_THAT(found->message, HasSubstr("-1 instead of -2"));
}

TEST(Bisect, StagesOfTheCompilerAgreeAndAFaultInKernelsIsSeen) {
  const std::vector<std::vector<Literal>> x{{floats({1, 2, 3, 4})}};
  const auto clean = bisect_passes(*parse(kLoop), x);
  ASSERT_TRUE(clean) << clean.error().message();
  EXPECT_EQ(clean->stage, "") << clean->message;
  EXPECT_GE(clean->stages, 3);
  Options options;
  options.change_kernels = with_fault(hlo::Opcode::Add, hlo::Opcode::Subtract).compile.change_kernels;
  const auto found = bisect_passes(*parse(kLoop), x, options);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->stage, "kernels and code");
}

constexpr const char* kDevices = R"(HloModule devices, replica_count=2, num_partitions=2
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
cond { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] multiply(x, x)
  start = f32[4] all-reduce-start(y), channel_id=1, use_global_device_ids=true, replica_groups={{0,3},{1,2}}, to_apply=plus
  sum = f32[4] all-reduce-done(start)
  all = f32[8] all-gather(sum), channel_id=2, use_global_device_ids=true, dimensions={0}, replica_groups={{0,1},{2,3}}
  moved = f32[8] collective-permute(all), channel_id=3, source_target_pairs={{0,1}}
  part = f32[4] slice(moved), slice={[2:6]}
  me = u32[] replica-id()
  here = f32[] convert(me)
  half = f32[4] broadcast(here), dimensions={}
  z = f32[4] add(part, half)
  k = s32[] constant(1)
  j = s32[] add(i, k)
  ROOT t = (s32[], f32[4]) tuple(j, z) }
ENTRY main {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  init = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(init), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
})";

std::vector<std::vector<Literal>> on_four() {
  std::vector<std::vector<Literal>> arguments;
  for (const float k : {0.f, 1.f, 2.f, 3.f}) arguments.push_back({floats({1, 2 + k, 3, k / 7})});
  return arguments;
}

// In f32 the sum is beyond the largest float before it is divided by its length.
TEST(Check, ATransformMayOverflowOnTheWay) {
  Literal x(Shape::array(DType::C64, {4}));
  for (std::complex<float>& e : x.mutable_data<std::complex<float>>()) e = {3e38f, 0};
  const auto report = check(parse("HloModule m\nENTRY e {\n x = c64[4] parameter(0)\n"
                                  " ROOT r = f32[6] fft(x), fft_type=IRFFT, fft_length={6}\n}\n"),
                            {&x, 1});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
}

// 65 times 1e37 is 6.5e38, beyond the largest float, and the difference of two of them nothing or a NaN.
TEST(Check, AComplexDotMayOverflowOnTheWay) {
  Literal x(Shape::array(DType::C64, {2, 2}));
  const std::complex<float> values[] = {{1, 1e37F}, {-2, -1e37F}, {1, 2}, {3, 4}};
  std::ranges::copy(values, x.mutable_data<std::complex<float>>().begin());
  constexpr const char* kDot = "HloModule m\nENTRY e {\n c = c64[] constant((65, 0))\n b = c64[2,1,1] broadcast(c), dimensions={}\n"
                               " x = c64[2,2] parameter(0)\n"
                               " ROOT d = c64[1,1,2] dot(b, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}\n}\n";
  const auto report = check(parse(kDot), {&x, 1});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
}

// An element of the factor is a few of the smallest numbers, and has no more digits than that.
TEST(Check, AFactorOfDenormalsIsAsGoodAsTheyAre) {
  Literal a(Shape::array(DType::F32, {2, 2}));
  std::ranges::copy(std::vector<float>{25, 0, 9.8e-45f, 25}, a.mutable_data<float>().begin());
  const auto report = check(parse("HloModule m\nENTRY e {\n x = f32[2,2] parameter(0)\n ROOT l = f32[2,2] cholesky(x), lower=true\n}\n"), {&a, 1});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
}

// Rounding decides whether a singular matrix has a factor.
TEST(Check, ASingularMatrixMayGoEitherWay) {
  Literal a(Shape::array(DType::C64, {17, 17}));
  for (std::complex<float>& e : a.mutable_data<std::complex<float>>()) e = {137, 0};
  const auto report = check(parse("HloModule m\nENTRY e {\n x = c64[17,17] parameter(0)\n ROOT l = c64[17,17] cholesky(x), lower=true\n}\n"), {&a, 1});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
}

// On the cut of the logarithm half a turn is as good as minus half a turn, and an angle of nothing is a rounding of it.
TEST(Check, ComplexAnglesMayDifferByATurn) {
  Literal y(Shape::array(DType::C128, {4})), x = y;
  const std::complex<double> values[] = {{-0.11111111111111109, 0.737420776289517}, {-0.3, 1e-3}, {0.7, 0.2}, {0.1, -5}};
  std::ranges::copy(values, x.mutable_data<std::complex<double>>().begin());
  const Literal arguments[] = {y, x};
  const auto report = check(parse("HloModule m\nENTRY e {\n y = c128[4] parameter(0)\n x = c128[4] parameter(1)\n ROOT a = c128[4] atan2(y, x)\n}\n"), arguments);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
}

constexpr const char* kLarge = R"(HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,64] tanh(d)
  ROOT r = f32[64,64] add(t, x)
})";

std::vector<Literal> large() {
  Literal x(Shape::array(DType::F32, {64, 64}));
  float v = 0;
  for (float& e : x.mutable_data<float>()) e = (v += 0.001f) - 2;
  return {x, x};
}

TEST(Check, WhatTakesTooManyStepsIsCheckedInASample) {
  const auto whole = check(parse(kLarge), large());
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_TRUE(whole->differences.empty()) << to_string(whole->differences[0]);
  EXPECT_EQ(whole->elements, whole->elements_of_checked);
  CheckOptions options;
  options.work = 1000;
  const auto sampled = check(parse(kLarge), large(), options);
  ASSERT_TRUE(sampled) << sampled.error().message();
  EXPECT_TRUE(sampled->differences.empty()) << to_string(sampled->differences[0]);
  EXPECT_EQ(sampled->checks, whole->checks);
  EXPECT_EQ(sampled->skipped, 0);
  EXPECT_LT(sampled->elements, sampled->elements_of_checked / 4);
  EXPECT_GT(sampled->elements, 0);
}

TEST(Check, ASampleSeesAFaultAndNamesItsBox) {
  CheckOptions options = with_fault(hlo::Opcode::Add, hlo::Opcode::Subtract);
  options.work = 1000;
  const auto report = check(parse(kLarge), large(), options);
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_FALSE(report->differences.empty());
  EXPECT_THAT(report->differences[0].message, HasSubstr(", in its box ["));
}

TEST(Check, ProgramsOnSeveralDevices) {
  const auto report = check_devices(parse(kDevices), on_four());
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
  EXPECT_GT(report->instructions, 6);
  EXPECT_GT(report->checks, 4 * report->instructions);
}

TEST(Check, NamesTheCollectiveAndTheDevice) {
  CheckOptions options;
  options.compile.change_kernels = [](std::vector<kernels::Kernel>& kernels) {
    for (kernels::Kernel& kernel : kernels)
      if (kernel.name.find("fold") != std::string::npos) change(kernel, kernel.body, hlo::Opcode::Add, hlo::Opcode::Subtract);
  };
  const auto report = check_devices(parse(kDevices), on_four(), options);
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_FALSE(report->differences.empty());
  EXPECT_EQ(report->differences[0].instruction, "sum");
  EXPECT_EQ(report->differences[0].device, 0);
  EXPECT_THAT(to_string(report->differences[0]), HasSubstr("on device 0, iteration 0 of w"));
}

// Twice, so that the second is compared with the second.
TEST(Check, FollowsWhatDevicesSend) {
  constexpr const char* kSent = R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  a = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, a), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
  sd = token[] send-done(s), channel_id=1
  again = (f32[4], u32[], token[]) send(n, sd), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
  sd2 = token[] send-done(again), channel_id=1
  r = (f32[4], u32[], token[]) recv(a), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
  rd = (f32[4], token[]) recv-done(r), channel_id=1
  t = token[] get-tuple-element(rd), index=1
  r2 = (f32[4], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
  rd2 = (f32[4], token[]) recv-done(r2), channel_id=1
  y = f32[4] get-tuple-element(rd), index=0
  z = f32[4] get-tuple-element(rd2), index=0
  ROOT d = (f32[4], f32[4]) tuple(y, z)
})";
  const auto report = check_devices(parse(kSent), on_four());
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
  EXPECT_EQ(report->instructions, 3);  // a negation, two receives
  EXPECT_EQ(report->checks, 12);
}

// Sent in one order of dimensions, read in another: bytes arrive, and mean something else.
TEST(Check, NamesTheReceiveThatGivesOtherValues) {
  constexpr const char* kTurned = R"(HloModule m, entry_computation_layout={(f32[2,2]{0,1})->f32[2,2]{1,0}}, num_partitions=2
ENTRY e {
  x = f32[2,2]{0,1} parameter(0)
  a = token[] after-all()
  s = token[] custom-call(x, a), custom_call_target="hloom.send_to_device", operand_layout_constraints={f32[2,2]{0,1}, token[]}, custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config={mailbox = 1 : i64, pairs = array<i64: 0, 1, 1, 0>}
  r = (f32[2,2]{1,0}, token[]) custom-call(a), custom_call_target="hloom.take_from_device", operand_layout_constraints={token[]}, custom_call_has_side_effect=true, control-predecessors={s}, api_version=API_VERSION_TYPED_FFI, backend_config={mailbox = 1 : i64, pairs = array<i64: 0, 1, 1, 0>}
  ROOT y = f32[2,2]{1,0} get-tuple-element(r), index=0
})";
  Literal x(Shape::array(DType::F32, {2, 2}));
  std::ranges::copy(std::vector<float>{1, 2, 3, 4}, x.mutable_data<float>().begin());
  const auto report = check_devices(parse(kTurned), std::vector<std::vector<Literal>>{{x}, {x}});
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_FALSE(report->differences.empty());
  EXPECT_EQ(report->differences[0].instruction, "r");
  EXPECT_THAT(report->differences[0].message, HasSubstr("2 of 4 elements differ; first at [0,1]: 3 instead of 2"));
}

TEST(FirstNotFinite, NamesTheDevice) {
  auto arguments = on_four();
  arguments[2][0] = floats({1, 2, 3, 6e37F});  // its square is too large
  const auto found = first_not_finite_devices(parse(kDevices), arguments);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_TRUE(found->found);
  EXPECT_EQ(found->place.device, 2);
  EXPECT_THAT(found->place.what, StartsWith("multiply f32[4]"));
  EXPECT_THAT(to_string(found->place), HasSubstr("on device 2, iteration 0 of w"));
}

// What one device has reaches others: it is the first that is named.
TEST(FirstNotFinite, DevicesThatMakeNoneAgree) {
  auto arguments = on_four();
  for (auto& own : arguments) own[0] = floats({0, 0, 0, 0});
  const auto found = first_not_finite_devices(parse(kDevices), arguments);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_FALSE(found->found) << to_string(found->place);
}

TEST(Bisect, ProgramsOnSeveralDevices) {
  std::vector<std::vector<Literal>> arguments;
  for (int k = 0; k < 4; ++k) arguments.push_back({floats({0, 0, 1, 0})});
  const auto clean = bisect_passes(*parse(kDevices), arguments);
  ASSERT_TRUE(clean) << clean.error().message();
  EXPECT_EQ(clean->stage, "") << clean->message;
  EXPECT_GE(clean->stages, 3);
  constexpr const char* kMoved = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] add(x, x)
  ROOT r = f32[4] collective-permute(y), channel_id=1, source_target_pairs={{0,1}}
})";
  const std::string wrong = std::string(kMoved).replace(std::string(kMoved).find("{{0,1}}"), 7, "{{1,0}}");
  const std::vector<std::vector<Literal>> two{{floats({1, 2, 3, 4})}, {floats({5, 6, 7, 8})}};
  const auto found = bisect(*parse(kMoved), std::vector<StageText>{{"same", kMoved}, {"other", wrong}}, two);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->stage, "other");
  EXPECT_THAT(found->message, StartsWith("device 0: "));
  Options options;
  options.change_kernels = with_fault(hlo::Opcode::Add, hlo::Opcode::Subtract).compile.change_kernels;
  const auto kernels = bisect_passes(*parse(kMoved), two, options);
  ASSERT_TRUE(kernels) << kernels.error().message();
  EXPECT_EQ(kernels->stage, "kernels and code");
}

}  // namespace
}  // namespace hloom::compiler
