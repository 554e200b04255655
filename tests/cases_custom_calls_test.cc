// Custom calls that are opcodes by another name, checks and markers; constants that fusions hold.
#include "cases.h"
#include "compiler/compile.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "interp/interpret.h"

namespace hloom::cases {
namespace {

// --- First elements ------------------------------------------------------------------------------------------------

// The text is what JAX's export has for approx_max_k and approx_min_k: arrays, then what is there where nothing is.
std::string approx_top_k(const std::string& direction, std::int64_t dimension, const std::string& shape,
                         const std::string& result) {
  return "HloModule m\nbefore { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n"
         " d = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=" + direction +
         " }\nENTRY e {\n x = f32[" + shape + "] parameter(0)\n i = s32[" + shape + "] iota(), iota_dimension=" +
         std::to_string(dimension) + "\n least = f32[] constant(-inf)\n none = s32[] constant(-1)\n"
         " ROOT t = (f32[" + result + "], s32[" + result + "]) custom-call(x, i, least, none), custom_call_target=\"ApproxTopK\","
         " called_computations={before}, backend_config={aggregate_to_topk = true, recall_target = 0.95 : f32, reduction_dim = " +
         std::to_string(dimension) + " : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}\n}\n";
}

std::string top_k(const std::string& direction) {
  return "HloModule m\nbefore { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=" +
         direction + " }\nENTRY e { x = f32[5] parameter(0)\n ROOT t = (f32[2], s32[2]) custom-call(x),"
         " custom_call_target=\"TopK\", called_computations={before} }\n";
}

const std::string kRows = "{{3, 1, 4, 1, 5}, {9, 2, 6, 5, 3}}";

// --- Transforms ----------------------------------------------------------------------------------------------------

// Descriptors as JAX wrote them in 2023: c64[3,4], forwards along the last dimension.
const std::string kDescriptor =
    "{24, 0, 0, 0, 20, 0, 36, 0, 0, 0, 0, 0, 8, 0, 12, 0, 16, 0, 20, 0, 7, 0, 24, 0, 20, 0, 0, 0, 0, 0, 0, 1, 84, "
    "0, 0, 0, 56, 0, 0, 0, 28, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 240, 63, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,"
    " 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, "
    "1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}";
const std::string kDynamicDescriptor =
    "{20, 0, 0, 0, 0, 0, 14, 0, 16, 0, 8, 0, 0, 0, 0, 0, 12, 0, 7, 0, 14, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 4, 0, 0,"
    " 0, 1, 0, 0, 0, 1, 0, 0, 0}";
const std::string kTwelve = "{{(0, 0), (1, 0), (2, 0), (3, 0)}, {(4, 0), (5, 0), (6, 0), (7, 0)}, {(8, 0), (9, 0), (10, 0), (11, 0)}}";
const std::string kTransformed =
    "{{(6, 0), (-2, 2), (-2, 0), (-2, -2)}, {(22, 0), (-2, 2), (-2, 0), (-2, -2)}, {(38, 0), (-2, 2), (-2, 0), (-2, -2)}}";

std::string ducc_fft() {
  return "HloModule m\nENTRY e {\n x = c64[3,4] parameter(0)\n d = u8[136] constant(" + kDescriptor +
         ")\n ROOT r = c64[3,4] custom-call(d, x), custom_call_target=\"ducc_fft\", api_version=API_VERSION_STATUS_RETURNING,"
         " operand_layout_constraints={u8[136]{0}, c64[3,4]{1,0}}\n}\n";
}

// Sizes are computed, as exported programs do; the factor is not that of a forward transform.
std::string dynamic_ducc_fft(const std::string& factor) {
  return "HloModule m\nENTRY e {\n x = c64[3,4] parameter(0)\n d = u8[44] constant(" + kDynamicDescriptor +
         ")\n four = s64[] constant(4)\n f = s32[] convert(four)\n f1 = s32[1] reshape(f)\n one = s32[1] constant({1})\n"
         " three = s32[1] constant({3})\n shape = s32[2] concatenate(three, f1), dimensions={0}\n"
         " strides = s32[2] concatenate(f1, one), dimensions={0}\n factor = f64[1] constant({" + factor + "})\n"
         " ROOT r = c64[3,4] custom-call(d, x, shape, strides, strides, factor, shape), custom_call_target=\"dynamic_ducc_fft\","
         " api_version=API_VERSION_STATUS_RETURNING\n}\n";
}

// --- Buffers -------------------------------------------------------------------------------------------------------

constexpr const char* kBuffers = R"(HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  pinned = b(f32[3]) custom-call(x), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  y = f32[3] custom-call(pinned), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
  made = b(f32[3]) custom-call(), custom_call_target="CreateBuffer"
  z = f32[3] custom-call(made), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
  ROOT r = (f32[3], f32[3], f32[3]) tuple(x, y, z)
})";

constexpr const char* kCarriedBuffer = R"(HloModule m
more { s = (s32[], b(f32[3])) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT p = pred[] compare(n, k), direction=LT }
body { s = (s32[], b(f32[3])) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  b = b(f32[3]) get-tuple-element(s), index=1
  x = f32[3] custom-call(b), custom_call_target="Unpin"
  two = f32[3] add(x, x)
  again = b(f32[3]) custom-call(two), custom_call_target="Pin"
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT t = (s32[], b(f32[3])) tuple(m, again) }
ENTRY e {
  x = f32[3] parameter(0)
  b = b(f32[3]) custom-call(x), custom_call_target="Pin"
  zero = s32[] constant(0)
  t = (s32[], b(f32[3])) tuple(zero, b)
  w = (s32[], b(f32[3])) while(t), condition=more, body=body
  last = b(f32[3]) get-tuple-element(w), index=1
  ROOT r = f32[3] custom-call(last), custom_call_target="Unpin"
})";

// --- Constants -----------------------------------------------------------------------------------------------------

constexpr const char* kConstantInFusion = R"(HloModule m, is_scheduled=true
fused { a = s32[4]{0} parameter(0)
  c = s32[4]{0} constant({1, -2, 3, -4})
  k = s32[4]{0} constant({7, 7, 7, 7})
  s = s32[4]{0} multiply(a, c)
  ROOT t = s32[4]{0} add(s, k) }
ENTRY e {
  x = s32[4]{0} parameter(0)
  ROOT r = s32[4]{0} fusion(x), kind=kLoop, calls=fused
})";

// Two fusions inside a loop; one constant lies column by column, one has no elements.
constexpr const char* kConstantsInALoop = R"(HloModule m
fused { a = s32[2,2] parameter(0)
  c = s32[2,2]{0,1} constant({{1, 2}, {3, 4}})
  none = s32[0,2] constant({})
  all = s32[2,2] concatenate(none, a), dimensions={0}
  ROOT s = s32[2,2] add(all, c) }
other { a = s32[2,2] parameter(0)
  c = s32[2,2] constant({{1, 2}, {3, 4}})
  ROOT s = s32[2,2] add(c, a) }
more { s = (s32[], s32[2,2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] constant(2)
  ROOT p = pred[] compare(n, k), direction=LT }
body { s = (s32[], s32[2,2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  a = s32[2,2] get-tuple-element(s), index=1
  f = s32[2,2] fusion(a), kind=kLoop, calls=fused
  g = s32[2,2] fusion(f), kind=kLoop, calls=other
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT t = (s32[], s32[2,2]) tuple(m, g) }
ENTRY e {
  x = s32[2,2] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], s32[2,2]) tuple(zero, x)
  w = (s32[], s32[2,2]) while(t), condition=more, body=body
  ROOT r = s32[2,2] get-tuple-element(w), index=1
})";

const std::vector<Case> kCases = {
    {"ApproximateTopKIsTheExactOne", approx_top_k("GT", 1, "2,5", "2,2"), {kRows}, {"{{5, 4}, {9, 6}}", "{{4, 2}, {0, 2}}"}},
    {"ApproximateTopKTakesEqualElementsInOrder", approx_top_k("LT", 1, "2,5", "2,3"), {kRows},
     {"{{1, 1, 3}, {2, 3, 5}}", "{{1, 3, 0}, {1, 4, 3}}"}},
    {"ApproximateTopKOfAnyDimension", approx_top_k("GT", 0, "2,5", "1,5"), {kRows}, {"{{9, 2, 6, 5, 5}}", "{{1, 1, 1, 1, 0}}"}},
    {"TopKByGreater", top_k("GT"), {"{3, 1, 4, 1, 5}"}, {"{5, 4}", "{4, 2}"}},
    {"TopKByLessGivesTheSmallest", top_k("LT"), {"{3, 1, 4, 1, 5}"}, {"{1, 1}", "{1, 3}"}},
    {"DuccFftIsATransform", ducc_fft(), {kTwelve}, {kTransformed}, arrays::Tolerance::close(1e-5, 1e-5)},
    {"DuccFftWithComputedSizes", dynamic_ducc_fft("1"), {kTwelve}, {kTransformed}, arrays::Tolerance::close(1e-5, 1e-5)},
    {"DuccFftMultipliesByItsFactor", dynamic_ducc_fft("0.5"), {kTwelve},
     {"{{(3, 0), (-1, 1), (-1, 0), (-1, -1)}, {(11, 0), (-1, 1), (-1, 0), (-1, -1)}, {(19, 0), (-1, 1), (-1, 0), (-1, -1)}}"},
     arrays::Tolerance::close(1e-5, 1e-5)},
    {"BuffersHaveTheValuesOfTheirArrays", kBuffers, {"{1, 2, 3}"}, {"{1, 2, 3}", "{1, 2, 3}", "{0, 0, 0}"}},
    {"ABufferIsCarriedRoundALoop", kCarriedBuffer, {"{1, 2, 3}"}, {"{8, 16, 24}"}},
    {"AConstantArrayInsideAFusion", kConstantInFusion, {"{1, 2, 3, 4}"}, {"{8, 3, 16, -9}"}},
    {"ConstantArraysOfFusionsInALoop", kConstantsInALoop, {"{{0, 0}, {0, 10}}"}, {"{{4, 8}, {12, 26}}"}},
};

INSTANTIATE_TEST_SUITE_P(CustomCalls, Cases, testing::ValuesIn(kCases), name_of);

// --- Checks --------------------------------------------------------------------------------------------------------

constexpr const char* kAssertion = R"(HloModule m
ENTRY e {
  n = s32[] parameter(0)
  least = s32[] constant(3)
  good = pred[] compare(n, least), direction=GE
  assert.1 = () custom-call(good, n, least), custom_call_target="shape_assertion", custom_call_has_side_effect=true, api_version=API_VERSION_STATUS_RETURNING, frontend_attributes={error_message="batch is {0}, at least {1} is needed"}
  ROOT r = s32[] add(n, n)
})";

Expected<std::int32_t> run_assertion(std::int32_t n) {
  const auto program = Executable::compile(kAssertion);
  if (!program) return program.error();
  std::int32_t out = 0;
  const std::span<std::byte> in[] = {std::as_writable_bytes(std::span(&n, 1))}, to[] = {std::as_writable_bytes(std::span(&out, 1))};
  const Expected<> done = program->run_into(in, to);
  if (!done) return done.error();
  return out;
}

Expected<std::int32_t> interpret_assertion(std::int32_t n) {
  const auto module = compiler::read_program(kAssertion, {});
  EXPECT_TRUE(module) << module.error().message();
  hlo::Literal argument(Shape::scalar(DType::S32));
  argument.mutable_data<std::int32_t>()[0] = n;
  const auto result = interp::interpret(**module, {&argument, 1});
  if (!result) return result.error();
  return result->data<std::int32_t>()[0];
}

TEST(ShapeAssertion, EndsTheRunWithItsMessage) {
  for (const auto run : {run_assertion, interpret_assertion}) {
    const auto good = run(3), bad = run(-2);
    ASSERT_TRUE(good) << good.error().message();
    EXPECT_EQ(*good, 6);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code(), Code::InvalidArgument);
    EXPECT_EQ(bad.error().message(), "assert.1: batch is -2, at least 3 is needed");
  }
}

// --- What does not fit ---------------------------------------------------------------------------------------------

std::string error_of(const std::string& text) {
  const auto program = Executable::compile(text);
  return program ? "none" : program.error().message();
}

TEST(CustomCalls, WhatATargetDoesNotTakeIsAnErrorWithTheInstructionsName) {
  std::string elsewhere = approx_top_k("GT", 1, "2,5", "2,2");
  elsewhere.replace(elsewhere.find("reduction_dim = 1"), 17, "reduction_dim = 2");
  EXPECT_NE(error_of(elsewhere).find("t: ApproxTopK gives"), std::string::npos) << error_of(elsewhere);
  EXPECT_NE(error_of(approx_top_k("GT", 1, "2,5", "2,6")).find("t: ApproxTopK gives"), std::string::npos);
  std::string broken = ducc_fft();
  broken.replace(broken.find("constant({24"), 12, "constant({200");
  EXPECT_NE(error_of(broken).find("r: its descriptor"), std::string::npos) << error_of(broken);
  std::string unknown = dynamic_ducc_fft("1");
  unknown.replace(unknown.find("s64[] constant(4)"), 17, "s64[] parameter(1)");
  EXPECT_NE(error_of(unknown).find("r: operand four must be known"), std::string::npos) << error_of(unknown);
}

}  // namespace
}  // namespace hloom::cases
