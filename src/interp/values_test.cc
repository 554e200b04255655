// Laws of values that no conformance case pins: what functions are good to, in which order sums are made, what only
// moves.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <sstream>

#include "arrays/conformance.h"
#include "interp/index.h"
#include "interp/interpret.h"
#include "text/parse.h"

namespace hloom::interp {
namespace {

using hlo::Literal;

template <typename T>
Literal array(DType type, Dims dims, const std::vector<T>& values) {
  Literal literal(Shape::array(type, std::move(dims)));
  const auto to = literal.mutable_data<T>();
  for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
  return literal;
}

Literal vector_of(const std::vector<float>& x) { return array(DType::F32, {static_cast<std::int64_t>(x.size())}, x); }

Expected<Literal> run(const std::string& text, const std::vector<Literal>& arguments, const Options& options = {}) {
  const auto module = text::parse_module(text);
  if (!module) return module.error();
  return interpret(**module, arguments, options);
}

std::vector<float> floats_of(const Expected<Literal>& result) {
  EXPECT_TRUE(result) << result.error().message();
  const auto data = result->data<float>();
  return {data.begin(), data.end()};
}

// The stored values of real functions are rounded correctly, so within one unit of them means within one and a half of
// the truth; what we compute is within 0.501 of it, so that the two differ by one unit at most.
TEST(RealFunctions, AreWithinOneUnitOfTheTruth) {
  const std::string folder = HLOOM_SOURCE_DIR "/tests/conformance";
  for (const char* opcode : {"exponential", "exponential-minus-one",
                             "log",         "log-plus-one",
                             "logistic",    "sine",
                             "cosine",      "tan",
                             "tanh",        "sinh",
                             "cosh",        "asin",
                             "acos",        "atan",
                             "asinh",       "acosh",
                             "atanh",       "erf",
                             "cbrt",        "rsqrt",
                             "sqrt",        "power",
                             "atan2"}) {
    const auto cases = arrays::read_conformance(folder, opcode);
    ASSERT_TRUE(cases) << cases.error().message();
    for (arrays::ConformanceCase c : *cases) {
      for (std::size_t i = 0; i < c.expected.size(); ++i)
        if (c.tolerances[i].kind == arrays::Tolerance::Kind::Ulp && !is_complex(c.expected[i].dtype()))
          c.tolerances[i] = arrays::Tolerance::within_ulp(1);
      const auto result = run(c.text, c.arguments);
      ASSERT_TRUE(result) << result.error().message();
      EXPECT_EQ(arrays::compare_results({&*result, 1}, c.expected, c.tolerances), std::nullopt) << opcode << c.name;
    }
  }
}

constexpr const char* kSum = R"(
HloModule sum
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[3] parameter(0)  z = f32[] constant(0)  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }
)";

TEST(Sums, AreMadeInF64UnlessAskedOtherwise) {
  const std::vector<Literal> x{vector_of({0x1p24f, 1, 1})};
  EXPECT_EQ(floats_of(run(kSum, x)), std::vector<float>{0x1p24f + 2});
  EXPECT_EQ(floats_of(run(kSum, x, {.sums_in_f64 = false})), std::vector<float>{0x1p24f});
}

TEST(Reduce, OfAFunctionWithALoopIsThatOfTheFunctionWithout) {
  // 2·acc + x, once as two operations, once as a conditional that the flat form cannot hold.
  const std::string head = "HloModule m\n", tail = R"(
ENTRY e { x = f32[4,3] parameter(0)  z = f32[] constant(1)  ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=f }
)";
  const std::string flat =
      "f { a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] add(a, a) ROOT r = f32[] add(d, b) }";
  const std::string branched = R"(
twice { p = (f32[], f32[]) parameter(0) a = f32[] get-tuple-element(p), index=0 b = f32[] get-tuple-element(p), index=1
        d = f32[] add(a, a) ROOT r = f32[] add(d, b) }
other { p = f32[] parameter(0) ROOT r = f32[] negate(p) }
f { a = f32[] parameter(0) b = f32[] parameter(1) t = (f32[], f32[]) tuple(a, b) c = pred[] constant(true)
    ROOT r = f32[] conditional(c, t, a), true_computation=twice, false_computation=other }
)";
  std::vector<float> x(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i) / 7;
  const std::vector<Literal> arguments{array(DType::F32, {4, 3}, x)};
  EXPECT_EQ(floats_of(run(head + flat + tail, arguments)), floats_of(run(head + branched + tail, arguments)));
}

// Prefix windows, windows side by side and windows one by one all give the sums of the definition.
TEST(ReduceWindow, EqualsItsDefinition) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const int n = draw(1, 7), size = draw(1, 8), stride = draw(1, 2), low = draw(-1, 8), high = draw(-1, 4),
              lhs = draw(1, 2), rhs = draw(1, 2);
    const int dilated = (n - 1) * lhs + 1, padded = dilated + low + high, wide = (size - 1) * rhs + 1;
    if (padded < 0) continue;
    const int places = padded < wide ? 0 : (padded - wide) / stride + 1;
    std::ostringstream text;
    text << "HloModule m\nf { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] constant(3) d = s32[] "
            "multiply(a, c) "
         << "ROOT r = s32[] subtract(d, b) }\nENTRY e { x = s32[2," << n << "] parameter(0) z = s32[] constant(5) "
         << "ROOT r = s32[2," << places << "] reduce-window(x, z), window={size=1x" << size << " stride=1x" << stride
         << " pad=0_0x" << low << "_" << high << " lhs_dilate=1x" << lhs << " rhs_dilate=1x" << rhs
         << "}, to_apply=f }";
    std::vector<std::int32_t> x, want;
    for (int i = 0; i < 2 * n; ++i) x.push_back(draw(-9, 9));
    for (int row = 0; row < 2; ++row)
      for (int o = 0; o < places; ++o) {
        std::int32_t acc = 5;
        for (int k = 0; k < size; ++k) {
          const int p = o * stride + k * rhs - low;
          if (p >= 0 && p % lhs == 0 && p / lhs < n) acc = acc * 3 - x[static_cast<std::size_t>(row * n + p / lhs)];
        }
        want.push_back(acc);
      }
    const auto got = run(text.str(), {array(DType::S32, {2, n}, x)});
    ASSERT_TRUE(got) << got.error().message();
    const auto data = got->data<std::int32_t>();
    EXPECT_EQ(std::vector<std::int32_t>(data.begin(), data.end()), want) << text.str();
  }
}

TEST(Sort, EndsForAComparatorThatContradictsItself) {
  const std::string text = R"(
HloModule m
f { a = s32[] parameter(0) b = s32[] parameter(1) s = s32[] xor(a, b) k = s32[] constant(1) t = s32[] and(s, k)
    z = s32[] constant(0) ROOT r = pred[] compare(t, z), direction=EQ }
ENTRY e { x = s32[50] parameter(0) ROOT r = s32[50] sort(x), dimensions={0}, to_apply=f }
)";
  std::vector<std::int32_t> x(50);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int32_t>(i * 37 % 50);
  const auto got = run(text, {array(DType::S32, {50}, x)});
  ASSERT_TRUE(got) << got.error().message();
  std::vector<std::int32_t> sorted(got->data<std::int32_t>().begin(), got->data<std::int32_t>().end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], static_cast<std::int32_t>(i));
}

TEST(Movement, KeepsThePayloadsOfNaNs) {
  const std::string text = R"(
HloModule m
body { p = (f32[4], s32[]) parameter(0) x = f32[4] get-tuple-element(p), index=0 i = s32[] get-tuple-element(p), index=1
       one = s32[] constant(1) j = s32[] add(i, one) s = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}
       y = f32[4] dynamic-update-slice(x, s, j) ROOT t = (f32[4], s32[]) tuple(y, j) }
condition { p = (f32[4], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=1 n = s32[] constant(3)
            ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[4] parameter(0) z = s32[] constant(0) t = (f32[4], s32[]) tuple(x, z)
          w = (f32[4], s32[]) while(t), condition=condition, body=body ROOT r = f32[4] get-tuple-element(w), index=0 }
)";
  const auto signaling = std::bit_cast<float>(0xFFA12345u);
  const std::vector<Literal> arguments{vector_of({signaling, 1, 2, 3})};
  const auto got = run(text, arguments);
  ASSERT_TRUE(got) << got.error().message();
  for (const std::uint32_t bits : got->data<std::uint32_t>()) EXPECT_EQ(bits, 0xFFA12345u);
  // The update in place was of a copy: the argument is what it was.
  EXPECT_EQ(arguments[0].data<float>()[3], 3);
}

TEST(Bitcast, ReadsTheBufferThroughBothLayouts) {
  const auto transposed = run("HloModule m\nENTRY e { x = f32[2,3]{0,1} parameter(0) ROOT r = f32[6]{0} bitcast(x) }",
                              {array<float>(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(floats_of(transposed), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const auto packed = run("HloModule m\nENTRY e { x = s4[4]{0:E(4)} parameter(0) ROOT r = u8[2]{0} bitcast(x) }",
                          {array<std::int8_t>(DType::S4, {4}, {1, 2, -1, 7})});
  ASSERT_TRUE(packed) << packed.error().message();
  EXPECT_EQ(packed->data<std::uint8_t>()[0], 0x21);
  EXPECT_EQ(packed->data<std::uint8_t>()[1], 0x7F);
}

TEST(DynamicSizes, FlowThroughOperationsAndLoops) {
  const std::string text = R"(
HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[2,4] parameter(0) n = s32[] constant(3) d = f32[2,<=4] set-dimension-size(x, n), dimensions={1}
  t = f32[<=4,2] transpose(d), dimensions={1,0} u = f32[<=4,2] add(t, t) z = f32[] constant(0)
  v = f32[<=8,2] concatenate(u, t), dimensions={0} s = f32[2] reduce(v, z), dimensions={0}, to_apply=add
  k = s32[] get-dimension-size(v), dimensions={0} ROOT r = (f32[2], s32[]) tuple(s, k) }
)";
  const auto got = run(text, {array<float>(DType::F32, {2, 4}, {1, 2, 3, NAN, 4, 5, 6, NAN})});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->elements()[0].data<float>()[0], 18);
  EXPECT_EQ(got->elements()[0].data<float>()[1], 45);
  EXPECT_EQ(got->elements()[1].data<std::int32_t>()[0], 6);
}

}  // namespace
}  // namespace hloom::interp
