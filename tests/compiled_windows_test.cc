// Reduce-windows of every form, small and large: compiled programs give what the interpreter gives, to the bit, on whole numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "run_compiled.h"
#include "whole_numbers.h"

namespace hloom {
namespace {

// Few NaNs, so that most windows have none.
void fill(hlo::Literal& literal, std::mt19937_64& random) {
  const DType type = literal.dtype();
  for (std::int64_t k = 0; k < literal.num_elements(); ++k) {
    const auto x = static_cast<double>(static_cast<int>(random() % 5) - 2);
    const bool odd = is_floating(type) && random() % 997 == 0;
    put(literal, k, type == DType::Pred ? static_cast<double>(random() % 2) : odd ? double{NAN} : is_unsigned(type) ? x + 2 : x);
  }
}

void expect_as_interpreted(const std::string& text, int threads) {
  SCOPED_TRACE(text);
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  std::mt19937_64 random(11);
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : (*module)->entry()->parameters()) {
    arguments.emplace_back(p->shape());
    fill(arguments.back(), random);
  }
  const auto want = interp::interpret(**module, arguments);
  ASSERT_TRUE(want) << want.error().message();
  const std::vector<hlo::Literal> got = run_compiled(std::move(*module), arguments, threads);
  ASSERT_FALSE(got.empty());
  if (!want->is_tuple()) return expect_equal(got.front(), *want);
  for (std::size_t k = 0; k < got.size(); ++k) expect_equal(got[k], want->elements()[k]);
}

struct Form {
  const char *operand, *result;  // dims
  const char* window;
  const char* layout = "";
};

// Windows of a few elements, and of so many that they are made of smaller ones.
const Form kForms[] = {
    {"64,80", "64,80", "size=3x3 pad=1_1x1_1"},
    {"64,80", "62,78", "size=3x3"},
    {"64,80", "64,80", "size=3x3 pad=1_1x1_1", "{0,1}"},
    {"7,90", "7,90", "size=1x5 pad=0_0x2_2"},
    {"90,7", "90,7", "size=5x1 pad=2_2x0_0"},
    {"2,33,35,24", "2,17,18,24", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0"},
    {"2,24,33,35", "2,24,16,12", "size=1x1x2x3 stride=1x1x2x3 pad=0_0x0_0x0_0x0_1"},
    {"2,24,33,35", "2,24,33,35", "size=1x1x7x7 pad=0_0x0_0x3_3x3_3"},
    {"40,50", "38,46", "size=4x3 pad=-1_2x-1_-1"},
    {"20,30", "39,88", "size=3x3 pad=1_1x1_1 lhs_dilate=2x3"},
    {"2,10,12,16", "2,20,24,16", "size=1x2x2x1 pad=0_0x0_2x0_2x0_0 lhs_dilate=1x2x2x1"},
    {"40,50", "36,46", "size=3x3 rhs_dilate=2x2"},
    {"40,50", "20,46", "size=3x3 stride=2x1 rhs_dilate=2x3 pad=2_2x1_1"},
    {"4000", "4000", "size=9 pad=4_4"},
    {"5,900", "5,900", "size=1x101 pad=0_0x50_50"},
    {"900,5", "900,5", "size=101x1 pad=0_100x0_0"},
    {"3,900", "3,800", "size=1x101"},
    {"70,80", "70,80", "size=15x15 pad=7_7x7_7"},
    {"70,80", "66,77", "size=13x16 pad=5_3x7_5"},
    {"60,64", "60,64", "size=17x1 pad=16_0x0_0", "{0,1}"},
    {"60,90", "60,30", "size=1x64 stride=1x3 pad=0_0x30_33"},
    {"60,90", "60,79", "size=1x12 rhs_dilate=1x1 pad=0_0x0_0"},
    {"60,90", "60,46", "size=1x23 rhs_dilate=1x2 pad=0_0x0_0"},
    {"30,45", "30,178", "size=1x20 lhs_dilate=1x4 pad=0_0x10_10"},
    {"12,9,10,16", "12,9,10,16", "size=5x5x5x1 pad=2_2x2_2x2_2x0_0"},
};

std::string program(const Form& f, const std::string& type, const std::string& op, const std::string& initial) {
  return "HloModule m\nfold { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT c = " + type + "[] " + op +
         "(a, b) }\nENTRY e { p = " + type + "[" + f.operand + "]" + f.layout + " parameter(0)\n z = " + type + "[] constant(" + initial +
         ")\n ROOT r = " + type + "[" + f.result + "]" + f.layout + " reduce-window(p, z), window={" + f.window + "}, to_apply=fold }";
}

TEST(CompiledWindows, OfSums) {
  for (const Form& form : kForms) {
    for (const int threads : {1, 3}) expect_as_interpreted(program(form, "f32", "add", "0"), threads);
    for (const char* type : {"f64", "bf16", "u8"}) expect_as_interpreted(program(form, type, "add", "3"), 2);
  }
}

TEST(CompiledWindows, OfLargestAndLeast) {
  for (const Form& form : kForms) {
    for (const char* type : {"f32", "bf16"}) expect_as_interpreted(program(form, type, "maximum", "-inf"), 2);
    for (const char* type : {"f64", "s8"}) expect_as_interpreted(program(form, type, "minimum", "1"), 1);
  }
}

TEST(CompiledWindows, OfLogicAndProducts) {
  for (const Form& form : kForms) {
    for (const char* op : {"or", "xor"}) expect_as_interpreted(program(form, "pred", op, "false"), 2);
    expect_as_interpreted(program(form, "s32", "multiply", "1"), 2);
  }
}

// Running folds of many lines: by lanes, or some lines side by side, shared out over threads; lines that no group divides, and one.
const Form kRunning[] = {
    {"300,256", "300,256", "size=1x256 pad=0_0x255_0"},
    {"301,256", "301,256", "size=1x256 pad=0_0x0_255"},
    {"302,254", "302,254", "size=302x1 pad=301_0x0_0"},
    {"6,50,300", "6,50,300", "size=1x50x1 pad=0_0x49_0x0_0"},
    {"6,50,300", "6,50,300", "size=1x1x300 pad=0_0x0_0x0_299"},
    {"6,50,300", "6,50,300", "size=6x1x1 pad=0_5x0_0x0_0", "{0,2,1}"},
    {"1,70000", "1,70000", "size=1x70000 pad=0_0x69999_0"},
};

TEST(CompiledWindows, OfAllElementsUpToTheirOwn) {
  for (const Form& form : kRunning)
    for (const char* type : {"f32", "s32", "bf16"})
      for (const int threads : {1, 3}) expect_as_interpreted(program(form, type, "maximum", type[0] == 's' ? "-100" : "-inf"), threads);
  for (const Form& form : kRunning)
    for (const char* type : {"s32", "u8", "f64"}) expect_as_interpreted(program(form, type, "add", "0"), 3);
}

// Windows of pairs by a reducer named `take`, from (-inf, 7).
std::string pairs(const Form& form, const std::string& reducer) {
  const std::string dims = "[" + std::string(form.result) + "]" + form.layout, from = "[" + std::string(form.operand) + "]" + form.layout;
  return "HloModule m\ntake { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n" + reducer +
         " ROOT r = (f32[], s32[]) tuple(v, w) }\nENTRY e { p = f32" + from + " parameter(0)\n q = s32" + from +
         " parameter(1)\n z = f32[] constant(-inf)\n o = s32[] constant(7)\n ROOT r = (f32" + dims + ", s32" + dims +
         ") reduce-window(p, q, z, o), window={" + form.window + "}, to_apply=take }";
}

TEST(CompiledWindows, OfComputationsOfTheUser) {
  const std::string best = " g = pred[] compare(a, b), direction=GE\n v = f32[] select(g, a, b)\n w = s32[] select(g, i, j)\n";
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.window);
    expect_as_interpreted(pairs(form, best), 2);
  }
  for (const Form& form : kRunning) {
    SCOPED_TRACE(form.window);
    for (const int threads : {1, 3}) expect_as_interpreted(pairs(form, best), threads);
  }
}

// Of two arguments, which stands first is told by the value: the elements stay in their order, from the last one on too.
TEST(CompiledWindows, RunningOnesKeepTheOrderOfElements) {
  const std::string last_that_counts =
      " f = s32[] constant(3)\n m = s32[] and(j, f)\n z = s32[] constant(0)\n c = pred[] compare(m, z), direction=NE\n"
      " v = f32[] select(c, b, a)\n w = s32[] select(c, j, i)\n";
  for (const Form& form : kRunning) {
    SCOPED_TRACE(form.window);
    expect_as_interpreted(pairs(form, last_that_counts), 2);
  }
}

}  // namespace
}  // namespace hloom
