#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "passes/match.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::parse;
using testing::run;

std::string reduce(const std::string& type, const std::string& from, const std::string& to, const std::string& dims,
                   const std::string& opcode = "add", const std::string& initial = "3") {
  return "HloModule m\nf { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT r = " + type + "[] " + opcode +
         "(a, b) }\nENTRY e {\n p = " + type + from + " parameter(0)\n z = " + type + "[] constant(" + initial + ")\n ROOT r = " +
         type + to + " reduce(p, z), dimensions={" + dims + "}, to_apply=f\n}\n";
}

std::int64_t reduces_in(const hlo::Module& module) {
  std::int64_t n = 0;
  for (const Instruction& i : module.entry()->instructions()) n += is(&i, Opcode::Reduce) ? 1 : 0;
  return n;
}

// Elements 0, 1, 2, … 6, 0, … in logical order: sums are exact in f32.
template <typename T>
void count(hlo::Literal& literal) {
  std::int64_t k = 0;
  for (T& x : literal.mutable_data<T>()) x = static_cast<T>(k++ * 5 % 7);
}

void expect_same(const std::string& text, std::int64_t want_reduces) {
  SCOPED_TRACE(text);
  const auto before = parse(text), after = parse(text);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(any(run("split-reduces", *after)), want_reduces > 1);
  run("remove-dead", *after);
  EXPECT_EQ(reduces_in(*after), want_reduces) << testing::body(*after);
  EXPECT_EQ(run("split-reduces", *after), Changed::No) << testing::body(*after);
  EXPECT_EQ(after->entry()->root()->shape(), before->entry()->root()->shape());
  hlo::Literal argument(before->entry()->parameter(0)->shape());
  if (argument.shape().dtype() == DType::F32) count<float>(argument);
  if (argument.shape().dtype() == DType::F64) count<double>(argument);
  if (argument.shape().dtype() == DType::S32) count<std::int32_t>(argument);
  if (argument.shape().dtype() == DType::C64)
    for (auto& x : argument.mutable_data<std::complex<float>>()) x = {2, -3};
  const auto want = interp::interpret(*before, {&argument, 1}), got = interp::interpret(*after, {&argument, 1});
  ASSERT_TRUE(want && got);
  const auto exact = arrays::Tolerance::exact();
  EXPECT_EQ(arrays::compare_results({&*got, 1}, {&*want, 1}, {&exact, 1}), std::nullopt) << testing::body(*after);
}

TEST(SplitReduces, BlocksOfALongArrayAreReducedFirst) {
  EXPECT_EQ(testing::after("split-reduces", reduce("f32", "[1048576]", "[]", "0")),
            "a.1 = f32[] parameter(0)\nb.1 = f32[] parameter(1)\nROOT add = f32[] add(a.1, b.1)\n"
            "a.2 = f32[] parameter(0)\nb.2 = f32[] parameter(1)\nROOT add.1 = f32[] add(a.2, b.2)\n"
            "p = f32[1048576] parameter(0)\n"
            "z = f32[] constant(3)\n"
            "constant = f32[] constant(-0)\n"
            "r.2 = f32[128,8192] bitcast(p)\n"
            "r.3 = f32[128] reduce(r.2, constant), dimensions={1}, to_apply=add_f32\n"
            "ROOT r.4 = f32[] reduce(r.3, z), dimensions={0}, to_apply=add_f32.1\n");
}

TEST(SplitReduces, KeepTheSum) {
  expect_same(reduce("f32", "[65536]", "[]", "0"), 2);
  expect_same(reduce("s32", "[65536]", "[]", "0"), 2);
  expect_same(reduce("f64", "[3,70000]", "[3]", "1"), 2);
  expect_same(reduce("f32", "[300,5,50]", "[]", "0,1,2"), 2);
  expect_same(reduce("f32", "[300,5,50]", "[5]", "0,2", "maximum", "-1"), 1);
  expect_same(reduce("f32", "[2,70000]", "[]", "0,1"), 3);
  expect_same(reduce("f32", "[70000,3]", "[3]", "0"), 2);
  expect_same(reduce("c64", "[66000]", "[]", "0", "add", "(3,1)"), 2);
}

TEST(SplitReduces, ABlockThatRunsOverTheEndIsFilledWithWhatChangesNothing) {
  for (const char* n : {"65537", "66041", "70001"}) {  // primes
    const std::string from = std::string("[") + n + "]";
    expect_same(reduce("f32", from, "[]", "0"), 2);
    expect_same(reduce("f32", from, "[]", "0", "maximum", "-5"), 2);
    expect_same(reduce("s32", from, "[]", "0", "minimum", "9"), 2);
    expect_same(reduce("s32", from, "[]", "0", "or", "0"), 2);
    expect_same(reduce("s32", from, "[]", "0", "multiply", "1"), 2);
  }
}

TEST(SplitReduces, ALayoutIsKept) {
  expect_same(reduce("f32", "[5,66000]{0,1}", "[5]", "1"), 2);
  expect_same(reduce("f32", "[400,300]{0,1}", "[]", "0,1"), 2);
  expect_same(reduce("f32", "[3,40000,2]{0,2,1}", "[3,2]{0,1}", "1"), 2);
  const auto module = parse(reduce("f32", "[400,300]{0,1}", "[]", "0,1"));
  run("split-reduces", *module);
  for (const Instruction& i : module->entry()->instructions())
    EXPECT_FALSE(is(&i, Opcode::Copy) || is(&i, Opcode::Reshape)) << i.name();
}

TEST(SplitReduces, ShortOnesAndMoreThanAFewStay) {
  expect_same(reduce("f32", "[65535]", "[]", "0"), 1);
  expect_same(reduce("f32", "[16,65536]", "[16]", "1"), 1);
  expect_same(reduce("f32", "[2048,16]", "[16]", "0"), 1);
  expect_same(reduce("f32", "[16,16384,3]", "[16,3]", "1"), 1);
}

TEST(SplitReduces, WhatOnePartialValueTakesIsBoundedForAnyNumberOfThem) {
  expect_same(reduce("f32", "[16,262208]", "[16]", "1"), 2);
  expect_same(reduce("f32", "[2050,16]", "[16]", "0"), 2);
  expect_same(reduce("f32", "[1,2050,16]", "[1,16]", "1"), 2);
  expect_same(reduce("f32", "[16,16400,3]", "[16,3]", "1"), 2);
  expect_same(reduce("f32", "[4000,5]", "[]", "0,1"), 2);  // rows too short to go by lanes
}

// The sum of blocks of a narrow type is rounded once.
TEST(SplitReduces, SumsOfNarrowFloatsAreRoundedOnce) {
  const std::string text = reduce("bf16", "[65536]", "[]", "0", "add", "0");
  const auto before = parse(text), after = parse(text);
  run("split-reduces", *after);
  hlo::Literal argument(before->entry()->parameter(0)->shape());
  // Five of the eight blocks sum to 8225, which bf16 would make 8256: 65536 + 5·33 is nearest to 65536, 65536 + 5·64 is not.
  const auto elements = argument.mutable_data<std::uint16_t>();
  std::ranges::fill(elements, std::uint16_t{0x3f80});  // 1
  for (std::size_t block = 0; block < 5; ++block) elements[block * 8192] = 0x4208;  // 34
  const auto want = interp::interpret(*before, {&argument, 1}), got = interp::interpret(*after, {&argument, 1});
  ASSERT_TRUE(want && got);
  EXPECT_EQ(got->data<std::uint16_t>()[0], 0x4780);  // 65536
  EXPECT_EQ(want->data<std::uint16_t>()[0], 0x4780);
}

TEST(SplitReduces, OtherReducersStay) {
  expect_same(reduce("s32", "[65536]", "[]", "0", "subtract", "0"), 1);
}

// Blocks add computations while all that are there are gone through, however many there were: one more in each program.
TEST(SplitReduces, InBodiesOfLoopsInModulesOfAnySize) {
  std::string more;
  for (int computations = 4; computations < 12; ++computations) {
    const auto module = parse(
        "HloModule m\n" + more +
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
        "body { s = (s32[], f32[65536,16], f32[16]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
        " x = f32[65536,16] get-tuple-element(s), index=1\n z = f32[] constant(0)\n"
        " r = f32[16] reduce(x, z), dimensions={0}, to_apply=add\n one = s32[] constant(1)\n j = s32[] add(i, one)\n"
        " ROOT t = (s32[], f32[65536,16], f32[16]) tuple(j, x, r) }\n"
        "cond { s = (s32[], f32[65536,16], f32[16]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(2)\n"
        " ROOT c = pred[] compare(i, n), direction=LT }\n"
        "ENTRY e { x = f32[65536,16] parameter(0)\n a = f32[16] parameter(1)\n z = s32[] constant(0)\n"
        " init = (s32[], f32[65536,16], f32[16]) tuple(z, x, a)\n"
        " l = (s32[], f32[65536,16], f32[16]) while(init), condition=cond, body=body\n ROOT r = f32[16] get-tuple-element(l), index=2 }\n");
    ASSERT_TRUE(module);
    EXPECT_EQ(run("split-reduces", *module), Changed::Yes) << computations;
    EXPECT_EQ(run("split-reduces", *module), Changed::No) << computations;
    more += "more" + std::to_string(computations) + " { a = f32[] parameter(0)\n ROOT n = f32[] negate(a) }\n";
  }
}

}  // namespace
}  // namespace hloom::passes
