// Convolutions of every form, small and large: compiled programs give what the interpreter gives, to the bit where sums are of whole
// numbers, with kernels that are not finite too, of which only the products count that the input has an element for.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "run_compiled.h"
#include "whole_numbers.h"

namespace hloom {
namespace {

enum class Values : std::uint8_t { Small, WithOddKernels, AllBytes };

void fill(hlo::Literal& literal, std::mt19937_64& random, Values values) {
  const std::int64_t n = literal.num_elements();
  if (values == Values::AllBytes) {
    for (std::byte& b : literal.mutable_bytes()) b = static_cast<std::byte>(random());
    return;
  }
  for (std::int64_t k = 0; k < n; ++k) put(literal, k, static_cast<double>(static_cast<int>(random() % 7) - 3));
  if (values == Values::Small) return;
  for (const double odd : {double{INFINITY}, -double{INFINITY}, double{NAN}})
    put(literal, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)), odd);
}

struct Form {
  const char *input, *kernel, *result;  // dims
  const char *window, *labels;
  const char* result_layout = "";
  const char* groups = "";
};

std::string program(const Form& f, const std::string& type, bool constant_kernel = false) {
  const std::string kernel = type + "[" + f.kernel + "]";
  return "HloModule m\nENTRY e { p = " + type + "[" + f.input + "] parameter(0)\n c = " + type + "[] constant(3)\n q = " + kernel +
         (constant_kernel ? " broadcast(c), dimensions={}\n" : " parameter(1)\n") + " ROOT r = " + type +
         "[" + f.result + "]" + f.result_layout + " convolution(p, q), window={" + f.window + "}, dim_labels=" + f.labels + f.groups + " }";
}

void expect_as_interpreted(const std::string& text, Values values, int threads) {
  SCOPED_TRACE(text);
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  std::mt19937_64 random(7);
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : (*module)->entry()->parameters()) {
    arguments.emplace_back(p->shape());
    const bool small = values == Values::WithOddKernels && p->parameter_number() == 0;
    fill(arguments.back(), random, small ? Values::Small : values);
  }
  const auto want = interp::interpret(**module, arguments);
  ASSERT_TRUE(want) << want.error().message();
  const std::vector<hlo::Literal> got = run_compiled(std::move(*module), arguments, threads);
  ASSERT_FALSE(got.empty());
  expect_equal(got.front(), *want);
}

// Few products, and as many as it takes for padding to go into the input.
const Form kForms[] = {
    {"2,9,8,3", "3,2,3,5", "2,7,7,5", "size=3x2", "b01f_01io->b01f"},
    {"2,9,8,3", "3,2,3,5", "2,9,7,5", "size=3x2 pad=1_1x0_0", "b01f_01io->b01f"},
    {"2,9,8,3", "3,2,3,5", "2,4,7,5", "size=3x2 stride=2x1 rhs_reversal=1x0", "b01f_01io->b01f"},
    {"2,9,8,3", "3,2,3,5", "2,5,6,5", "size=3x2 rhs_dilate=2x2", "b01f_01io->b01f"},
    {"4,16,16,16", "3,3,16,24", "4,16,16,24", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
    {"4,16,16,16", "3,3,16,24", "4,16,16,24", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", "b01f_01io->b01f"},
    {"4,16,16,16", "3,3,16,24", "4,8,8,24", "size=3x3 stride=2x2 pad=0_1x0_1", "b01f_01io->b01f"},
    {"4,16,16,16", "3,3,16,24", "4,16,16,24", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", "b01f_01io->b01f"},
    {"4,8,8,16", "3,3,16,24", "4,16,16,24", "size=3x3 pad=1_2x1_2 lhs_dilate=2x2", "b01f_01io->b01f"},
    {"4,8,8,16", "3,3,24,16", "4,16,16,24", "size=3x3 pad=1_2x1_2 lhs_dilate=2x2 rhs_reversal=1x1", "b01f_01oi->b01f"},
    {"4,16,16,16", "4,16,16,24", "3,3,16,24", "size=16x16 pad=1_1x1_1", "f01b_i01o->01bf"},
    {"4,16,16,16", "24,16,3,3", "4,24,16,16", "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01"},
    {"4,16,16,16", "3,3,16,24", "4,16,16,24", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", "{1,2,3,0}"},
    {"8,100,32", "5,32,32", "8,100,32", "size=5 pad=4_0", "b0f_0io->b0f"},
    {"2,8,9,10,8", "3,3,3,8,16", "2,8,9,10,16", "size=3x3x3 pad=1_1x1_1x1_1", "b012f_012io->b012f"},
    // Lines of what is padded, staged for some lines of the result at a time: the last cell has fewer, steps and holes between
    // them, pads on one side, a single or an odd number of features, a cell for each of several images.
    {"1,50,40,32", "3,3,32,40", "1,50,40,40", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
    {"2,47,33,16", "5,3,16,24", "2,25,18,24", "size=5x3 stride=2x2 pad=3_4x1_3 rhs_dilate=1x1", "b01f_01io->b01f"},
    {"2,61,40,8", "3,3,8,32", "2,57,44,32", "size=3x3 pad=0_0x6_2 rhs_dilate=2x2", "b01f_01io->b01f"},
    {"1,60,60,3", "7,7,3,64", "1,30,30,64", "size=7x7 stride=2x2 pad=3_3x3_3", "b01f_01io->b01f"},
    {"2,40,40,64", "3,3,64,1", "2,40,40,1", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
    {"3,30,30,17", "3,3,17,33", "3,31,32,33", "size=3x3 pad=0_3x2_2 rhs_reversal=1x0", "b01f_01io->b01f"},
    {"2,6,20,24,8", "3,3,3,8,16", "2,6,20,24,16", "size=3x3x3 pad=1_1x1_1x1_1", "b012f_012io->b012f"},
    {"20,64,16", "5,16,32", "20,66,32", "size=5 pad=4_2", "b0f_0io->b0f"},
    // Groups of features: wide, narrow, of one feature; and of batches, as in the gradients of their kernels.
    {"2,16,16,48", "3,3,16,72", "2,16,16,72", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", "", ", feature_group_count=3"},
    {"2,48,16,16", "72,16,3,3", "2,72,16,16", "size=3x3 pad=1_1x1_1 rhs_reversal=1x0", "bf01_oi01->bf01", "", ", feature_group_count=3"},
    {"4,8,8,48", "3,3,4,60", "4,16,15,60", "size=3x3 pad=1_2x1_1 lhs_dilate=2x2", "b01f_01io->b01f", "", ", feature_group_count=12"},
    {"4,16,16,48", "3,3,4,60", "4,8,8,60", "size=3x3 stride=2x2 pad=2_2x2_2 rhs_dilate=2x2", "b01f_01io->b01f", "{0,3,2,1}", ", feature_group_count=12"},
    {"2,16,16,48", "3,3,1,48", "2,16,16,48", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", "", ", feature_group_count=48"},
    {"2,48,16,16", "96,1,3,3", "2,96,8,8", "size=3x3 stride=2x2 pad=0_1x0_1", "bf01_oi01->bf01", "", ", feature_group_count=48"},
    {"2,15,16,48", "3,3,2,24", "2,30,33,24", "size=3x3 pad=2_1x3_1 lhs_dilate=2x2", "b01f_01io->b01f", "", ", feature_group_count=24"},
    {"2,30,40", "9,1,40", "2,30,40", "size=9 pad=8_0", "b0f_0io->b0f", "", ", feature_group_count=40"},
    {"1,3,10,11", "1,12,2,2", "9,10,12,1", "size=2x2 pad=0_0x1_1 rhs_dilate=1x3 rhs_reversal=0x1", "bf01_io01->01fb", "",
     ", feature_group_count=3"},
    {"4,2,5,4", "2,10,2,2", "2,10,10,4", "size=2x2 pad=2_2x0_0 lhs_dilate=2x1", "fb10_io01->bf01", "", ", feature_group_count=2"},
    {"4,16,16,48", "4,16,16,72", "3,3,16,72", "size=16x16 pad=1_1x1_1", "f01b_i01o->01bf", "", ", batch_group_count=3"},
    {"4,16,16,48", "4,8,8,48", "3,3,1,48", "size=8x8 rhs_dilate=2x2 pad=1_0x1_0", "f01b_i01o->01bf", "", ", batch_group_count=48"},
    {"16,9,9,8", "3,3,8,24", "8,9,9,24", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", "b01f_01io->b01f", "", ", batch_group_count=2"},
    {"64,64", "64,256", "64,256", "", "bf_io->bf"},
    // The gradient of a depthwise convolution's kernel: a sum for each channel.
    {"4,28,28,48", "4,28,28,48", "3,3,1,48", "size=28x28 pad=1_1x1_1", "f01b_i01o->01bf", "", ", batch_group_count=48"},
    {"8,32,33,20", "8,15,16,20", "5,4,1,20", "size=15x16 rhs_dilate=2x2 pad=1_0x1_0", "f01b_i01o->01bf", "", ", batch_group_count=20"},
    {"2,12,12,9", "2,10,10,9", "3,3,1,9", "size=10x10", "f01b_i01o->01bf", "", ", batch_group_count=9"},
    {"2,40,200", "2,40,200", "5,1,200", "size=40 pad=4_0", "f0b_i0o->0bf", "{0,2,1}", ", batch_group_count=200"},
    // Base dilation: phases without any tap, of unequal parts of the kernel, cut off at the end.
    {"2,9,8,16", "2,2,16,48", "2,18,16,48", "size=2x2 pad=1_1x1_1 lhs_dilate=2x2", "b01f_01io->b01f"},
    {"8,9,8,16", "1,1,16,24", "8,17,15,24", "size=1x1 lhs_dilate=2x2", "b01f_01io->b01f"},
    {"4,7,8,16", "5,4,16,24", "4,22,15,24", "size=5x4 pad=3_4x2_1 lhs_dilate=3x2 rhs_reversal=1x0", "b01f_01io->b01f"},
    {"4,30,32", "6,32,48", "4,60,48", "size=6 pad=3_3 lhs_dilate=2", "b0f_0io->b0f"},
};

// Kernels and gradients too large for the near caches: panels are packed for many places of the result, and sums wait.
const Form kLargeForms[] = {
    {"2,7,7,96", "3,3,96,100", "2,7,7,100", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
    {"2,7,7,96", "3,3,100,96", "2,7,7,100", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", "b01f_01oi->b01f"},
    {"1,5,6,300", "3,3,300,40", "1,5,6,40", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
    {"1,8,9,256", "1,1,256,300", "1,4,5,300", "size=1x1 stride=2x2", "b01f_01io->b01f"},
    {"3,14,14,96", "3,14,14,40", "3,3,96,40", "size=14x14 pad=1_1x1_1", "f01b_i01o->01bf"},
    {"1,40,38,3", "1,20,19,64", "7,7,3,64", "size=20x19 pad=3_2x3_2 rhs_dilate=2x2", "f01b_i01o->01bf"},
    {"2,96,7,7", "100,96,3,3", "2,100,7,7", "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01"},
};

TEST(CompiledConvolutions, LargeOnesGiveTheInterpretersValues) {
  for (const Form& form : kLargeForms) {
    for (const int threads : {1, 3}) expect_as_interpreted(program(form, "f32"), Values::Small, threads);
    for (const char* type : {"f64", "bf16", "s32"}) expect_as_interpreted(program(form, type), Values::Small, 2);
  }
}

TEST(CompiledConvolutions, GiveTheInterpretersValues) {
  for (const Form& form : kForms) {
    for (const int threads : {1, 3}) expect_as_interpreted(program(form, "f32"), Values::Small, threads);
    for (const char* type : {"f64", "bf16", "f16", "s32", "s8", "u16"}) expect_as_interpreted(program(form, type), Values::Small, 2);
  }
}

// Bytes of any value, with sign and without, as they are and widened: where a processor has products of four at a time.
TEST(CompiledConvolutions, OfAllBytes) {
  const Form forms[] = {
      {"2,9,8,12", "3,2,12,20", "2,7,7,20", "size=3x2", "b01f_01io->b01f"},
      {"2,16,16,8", "3,3,8,37", "2,16,16,37", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
      {"2,16,16,8", "3,3,8,37", "2,8,8,37", "size=3x3 stride=2x2 pad=0_1x0_1 rhs_reversal=1x1", "b01f_01io->b01f"},
      {"1,16,18,32", "3,3,16,32", "1,16,18,32", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", "", ", feature_group_count=2"},
      {"2,16,16,6", "3,3,6,40", "2,16,16,40", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"},
      {"2,9,8,64", "1,1,64,50", "2,9,8,50", "size=1x1", "b01f_01io->b01f"},
      {"2,8,10,10", "40,8,3,3", "2,40,8,8", "size=3x3", "bf01_oi01->bf01"},
      {"50,52", "52,70", "50,70", "", "bf_io->bf"},
  };
  const std::pair<const char*, const char*> types[] = {{"s8", "s8"}, {"u8", "s8"}, {"s8", "u8"}, {"u8", "u8"}};
  for (const Form& f : forms)
    for (const auto& [input, kernel] : types)
      for (const bool widened : {false, true}) {
        const std::string p = std::string("[") + f.input + "]", q = std::string("[") + f.kernel + "]";
        const std::string wide = " w = s32" + p + " convert(p)\n v = s32" + q + " convert(q)\n";
        const std::string text = std::string("HloModule m\nENTRY e { p = ") + input + p + " parameter(0)\n q = " + kernel + q + " parameter(1)\n" +
                                 (widened ? wide : "") + " ROOT r = s32[" + f.result + "] convolution(" + (widened ? "w, v" : "p, q") +
                                 "), window={" + f.window + "}, dim_labels=" + f.labels + f.groups + " }";
        expect_as_interpreted(text, Values::AllBytes, 2);
      }
}

TEST(CompiledConvolutions, LeaveOutWhatTheInputLacks) {
  for (const Form& form : kForms) {
    for (const char* type : {"f32", "bf16", "f16"}) expect_as_interpreted(program(form, type), Values::WithOddKernels, 2);
    expect_as_interpreted(program(form, "f64"), Values::WithOddKernels, 1);
  }
}

// The padded input is no array: the result lies in its own memory, and nothing else is needed but lines in scratch.
TEST(CompiledConvolutions, HavePaddedLinesInScratch) {
  const Form form = {"2,64,64,32", "3,3,32,40", "2,64,64,40", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"};
  const auto compiled = compiler::compile(*compiler::read_program(program(form, "f32")));
  ASSERT_TRUE(compiled) << compiled.error().message();
  EXPECT_LT(compiled->assignment.arena_bytes(), 1024) << "whether the kernel is finite";
  std::int64_t scratch = 0;
  for (const kernels::Kernel& kernel : compiled->kernels) scratch = std::max(scratch, kernel.scratch_bytes);
  EXPECT_GE(scratch, 3 * 66 * 32 * 4);
  EXPECT_LE(scratch, 256 << 10);
}

// A kernel that is reversed first, as gradients have it.
TEST(CompiledConvolutions, OfReversedKernels) {
  for (const char* dims : {"0,1", "1", "0,1,2"}) {
    const std::string text =
        "HloModule m\nENTRY e { p = f32[4,8,8,16] parameter(0)\n q = f32[3,3,24,16] parameter(1)\n w = f32[3,3,24,16] reverse(q), dimensions={" +
        std::string(dims) + "}\n ROOT r = f32[4,16,16,24] convolution(p, w), window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2 rhs_reversal=0x1}, "
        "dim_labels=b01f_01oi->b01f }";
    expect_as_interpreted(text, Values::Small, 1);
    expect_as_interpreted(text, Values::WithOddKernels, 2);
  }
}

TEST(CompiledConvolutions, OfConstantKernels) {
  for (const Form& form : kForms) expect_as_interpreted(program(form, "f32", true), Values::Small, 1);
}

}  // namespace
}  // namespace hloom
