// Fusing keeps what a program means, and makes the kernels that it should.
#include "fusion/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "arrays/compare.h"
#include "arrays/corpus_folder.h"
#include "fusion/regions.h"
#include "fusion/taps.h"
#include "hlo/verify.h"
#include "interp/interpret.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::fusion {
namespace {

using hlo::Instruction;
using hlo::Opcode;

std::unique_ptr<hlo::Module> fused(const std::string& text) {
  auto module = text::parse_module(text);
  EXPECT_TRUE(module) << module.error().message();
  const auto done = fuse(**module);
  EXPECT_TRUE(done);
  const auto verified = hlo::check_module(**module);
  EXPECT_TRUE(verified) << verified.error().message() << text::print(**module);
  return *std::move(module);
}

std::vector<const Instruction*> kernels(const hlo::Module& module) {
  std::vector<const Instruction*> found;
  for (const Instruction& i : module.entry()->instructions())
    if (i.opcode() == Opcode::Fusion) found.push_back(&i);
  return found;
}

std::string decision(const Instruction& i, const std::string& key) {
  const auto& all = i.annotations().decisions;
  const auto found = all.find(key);
  return found == all.end() ? "" : found->second;
}

const std::string kAdd = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n";

TEST(Fuse, AChainIsOneKernel) {
  const auto m = fused(
      "ENTRY e { p = f32[9] parameter(0)\n a = f32[9] negate(p)\n b = f32[9] exponential(a)\n"
      " c = f32[9] reverse(b), dimensions={0}\n ROOT d = f32[9] add(c, p) }");
  EXPECT_EQ(kernels(*m).size(), 1u);
}

// x + roll(x), again and again: in one kernel each floor would double the work and more than double the code.
TEST(Fuse, ATowerOfRollsIsSeveralKernels) {
  std::string text = "ENTRY e { x0 = f32[512] parameter(0)\n";
  for (int n = 1; n <= 16; ++n) {
    const std::string from = "x" + std::to_string(n - 1), to = std::to_string(n);
    text += "l" + to + " = f32[511] slice(" + from + "), slice={[0:511]}\n h" + to + " = f32[1] slice(" + from + "), slice={[511:512]}\n r" +
            to + " = f32[512] concatenate(h" + to + ", l" + to + "), dimensions={0}\n x" + to + " = f32[512] add(" + from + ", r" + to + ")\n";
  }
  const auto m = fused(text + "ROOT y = f32[512] negate(x16) }");
  EXPECT_GE(kernels(*m).size(), 4u);
  EXPECT_LE(kernels(*m).size(), 17u);
}

// One that is read at its own place and beside it is written: its body would stand in the kernel, and run, several times.
TEST(Fuse, AFunctionIsNotComputedAtSeveralPlaces) {
  const auto program = [](const char* op) {
    return std::string("ENTRY e { p = f32[512] parameter(0)\n x = f32[512] ") + op +
           "(p)\n l = f32[511] slice(x), slice={[0:511]}\n h = f32[1] slice(x), slice={[511:512]}\n"
           " r = f32[512] concatenate(h, l), dimensions={0}\n ROOT y = f32[512] subtract(x, r) }";
  };
  EXPECT_EQ(kernels(*fused(program("negate"))).size(), 1u);
  EXPECT_EQ(kernels(*fused(program("tanh"))).size(), 2u);
}

// Elements of the even places and of the odd ones, of halves that are such again: as JAX writes a scan along a dimension.
TEST(Fuse, WhatIsSpreadAgainAndAgainIsSeveralKernels) {
  for (const std::string rows : {"", ",20"}) {  // of elements, or of rows
    const std::string none = rows.empty() ? "" : "x0_0";
    std::string text = "ENTRY e { x0 = f32[64" + rows + "] parameter(0)\n z = f32[] constant(0)\n";
    for (int n = 1; n <= 6; ++n) {
      const std::string to = std::to_string(n), size = std::to_string(64 << n) + rows, less = std::to_string((64 << n) - 1) + rows;
      text += "odd" + to + " = f32[" + less + "] pad(x" + std::to_string(n - 1) + ", z), padding=0_0_1" + none + "\n right" + to + " = f32[" + size + "] pad(odd" +
              to + ", z), padding=0_1" + none + "\n y" + to + " = f32[" + size + "] parameter(" + to + ")\n x" + to + " = f32[" + size + "] add(right" + to +
              ", y" + to + ")\n";
    }
    const auto m = fused(text + "ROOT r = f32[4096" + rows + "] negate(x6) }");
    EXPECT_EQ(kernels(*m).size(), 3u) << rows;
  }
}

TEST(Fuse, AReduceTakesItsProducersAndItsEpilogue) {
  const auto m = fused(kAdd +
                       "ENTRY e { p = f32[9,7] parameter(0)\n q = f32[9,7] multiply(p, p)\n z = f32[] constant(0)\n"
                       " r = f32[9] reduce(q, z), dimensions={1}, to_apply=add\n ROOT s = f32[9] sqrt(r) }");
  ASSERT_EQ(kernels(*m).size(), 1u);
  EXPECT_EQ(decision(*kernels(*m)[0], "kernel"), "reduce");
}

// A row that is reduced over its minor dimension `columns` wide, and what is done with it, by rows of p.
std::unique_ptr<hlo::Module> over_rows(const std::string& dims, const std::string& body) {
  std::string text = kAdd + "maximum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] maximum(a, b) }\n" +
                     "ENTRY e { p = f32[" + dims + "] parameter(0)\n zero = f32[] constant(0)\n" + body + " }";
  return fused(text);
}

std::vector<std::string> kinds(const hlo::Module& module) {
  std::vector<std::string> names;
  for (const Instruction* k : kernels(module)) names.push_back(decision(*k, "kernel"));
  return names;
}

const Instruction* named(const hlo::Module& module, const std::string& name) {
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (i.name() == name || i.name().starts_with(name + ".")) return &i;
  return nullptr;
}

TEST(Rows, AReduceThatComesBackToItsRowIsOneKernel) {
  const auto m = over_rows("9,17",
                           " r = f32[9] reduce(p, zero), dimensions={1}, to_apply=add\n b = f32[9,17] broadcast(r), dimensions={0}\n"
                           " ROOT s = f32[9,17] subtract(p, b)");
  ASSERT_EQ(kinds(*m), std::vector<std::string>{"rows"});
  EXPECT_EQ(decision(*kernels(*m)[0], "rows"), "9 of 17");
}

const std::string kSoftmax =
    " m = f32[9,17] reduce(p, zero), dimensions={2}, to_apply=maximum\n mb = f32[9,17,33] broadcast(m), dimensions={0,1}\n"
    " d = f32[9,17,33] subtract(p, mb)\n x = f32[9,17,33] exponential(d)\n"
    " sum = f32[9,17] reduce(x, zero), dimensions={2}, to_apply=add\n"
    " u = f32[9,17,1] reshape(sum)\n v = f32[9,17] reshape(u)\n sb = f32[9,17,33] broadcast(v), dimensions={0,1}\n";

TEST(Rows, SoftmaxIsOneKernelOfTwoSums) {
  const auto m = over_rows("9,17,33", kSoftmax + " ROOT y = f32[9,17,33] divide(x, sb)");
  ASSERT_EQ(kinds(*m), std::vector<std::string>{"rows"});
  EXPECT_EQ(decision(*kernels(*m)[0], "rows"), "153 of 33");
  EXPECT_EQ(decision(*named(*m, "m"), "rows"), "pass 1");
  EXPECT_EQ(decision(*named(*m, "sum"), "rows"), "pass 2");
}

TEST(Rows, LogSoftmaxIsOneKernelHoweverItIsSpelled) {
  const auto m = over_rows("9,17,33", kSoftmax + " l = f32[9,17] log(v)\n lb = f32[9,17,33] broadcast(l), dimensions={0,1}\n"
                                                 " ROOT y = f32[9,17,33] subtract(d, lb)");
  EXPECT_EQ(kinds(*m), std::vector<std::string>{"rows"});
}

TEST(Rows, WhatIsUsedElsewhereIsOneMoreResult) {
  const auto m = over_rows("9,17,33", kSoftmax + " y = f32[9,17,33] divide(x, sb)\n"
                                                 " ROOT t = (f32[9,17], f32[9,17,33]) tuple(sum, y)");
  EXPECT_EQ(kinds(*m), std::vector<std::string>{"rows"});
  EXPECT_EQ(kernels(*m)[0]->shape().elements().size(), 2u);
}

// The sum of two arrays is one more result, so that neither is needed by what comes later; of one array it is made again.
TEST(Rows, AResidualSumIsWrittenAndASimpleOneMadeAgain) {
  const auto norm_of = [](const std::string& x) {
    return x + " r = f32[9] reduce(x, zero), dimensions={1}, to_apply=add\n b = f32[9,9] broadcast(r), dimensions={0}\n"
               " n = f32[9,9] subtract(x, b)\n d = f32[9,9] dot(n, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               " ROOT s = f32[9,9] add(d, x)";
  };
  const auto two = over_rows("9,9", norm_of(" q = f32[9,9] parameter(1)\n x = f32[9,9] add(p, q)\n"));
  ASSERT_EQ(kernels(*two).size(), 3u);
  EXPECT_EQ(kernels(*two)[0]->shape().elements().size(), 2u);
  EXPECT_EQ(kernels(*two)[2]->num_operands(), 2);
  const auto one = over_rows("9,9", norm_of(" x = f32[9,9] abs(p)\n"));
  ASSERT_EQ(kernels(*one).size(), 3u);
  EXPECT_TRUE(kernels(*one)[0]->shape().is_array());
}

TEST(Rows, PiecesArePutTogetherBeforehand) {
  const auto m = over_rows("9,9",
                           " q = f32[9,8] slice(p), slice={[0:9], [1:9]}\n o = f32[9,1] slice(p), slice={[0:9], [0:1]}\n"
                           " w = f32[9,9] concatenate(q, o), dimensions={1}\n x = f32[9,9] exponential(w)\n"
                           " r = f32[9] reduce(x, zero), dimensions={1}, to_apply=add\n b = f32[9,9] broadcast(r), dimensions={0}\n"
                           " ROOT s = f32[9,9] subtract(x, b)");
  EXPECT_EQ(kinds(*m), (std::vector<std::string>{"loop", "rows"}));
}

TEST(Rows, WhatComesBackThroughAnotherKernelIsAnotherOne) {
  // The second sum is over rows of the first kernel's result, after a dot.
  const auto m = over_rows("8,8",
                           " r = f32[8] reduce(p, zero), dimensions={1}, to_apply=add\n b = f32[8,8] broadcast(r), dimensions={0}\n"
                           " a = f32[8,8] subtract(p, b)\n"
                           " d = f32[8,8] dot(a, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                           " q = f32[8] reduce(d, zero), dimensions={1}, to_apply=add\n c = f32[8,8] broadcast(q), dimensions={0}\n"
                           " e = f32[8,8] add(d, c)\n ROOT f = f32[8,8] multiply(e, a)");
  EXPECT_EQ(kinds(*m), (std::vector<std::string>{"rows", "dot", "rows"}));
}

TEST(Rows, ColumnsAreRowsOfTheirOwn) {
  const auto m = over_rows("9,17",
                           " r = f32[17] reduce(p, zero), dimensions={0}, to_apply=add\n b = f32[9,17] broadcast(r), dimensions={1}\n"
                           " ROOT s = f32[9,17] subtract(p, b)");
  ASSERT_EQ(kinds(*m), std::vector<std::string>{"rows"});
  EXPECT_EQ(decision(*kernels(*m)[0], "rows"), "17 of 9");
}

TEST(Rows, ASumThatComesBackToOtherRowsIsWritten) {
  // r is a sum for each row, and is added along columns.
  const auto m = over_rows("9,9",
                           " r = f32[9] reduce(p, zero), dimensions={1}, to_apply=add\n b = f32[9,9] broadcast(r), dimensions={1}\n"
                           " ROOT s = f32[9,9] subtract(p, b)");
  EXPECT_EQ(kinds(*m), (std::vector<std::string>{"reduce", "loop"}));
}

TEST(Fuse, SumsOverTheSameArraysAreOneKernel) {
  // As the gradients of a norm's scale and shift: over rows, each of its own.
  const auto m = over_rows("100000,32",
                           " y = f32[100000,32] parameter(1)\n q = f32[100000,32] multiply(p, y)\n"
                           " a = f32[32] reduce(q, zero), dimensions={0}, to_apply=add\n"
                           " b = f32[32] reduce(y, zero), dimensions={0}, to_apply=add\n"
                           " ROOT t = (f32[32], f32[32]) tuple(a, b)");
  ASSERT_EQ(kinds(*m), std::vector<std::string>{"reduce"});
  EXPECT_EQ(kernels(*m)[0]->num_operands(), 2);
}

TEST(Fuse, SumsThatWaitForEachOtherAreNot) {
  const auto m = over_rows("100000,32",
                           " a = f32[32] reduce(p, zero), dimensions={0}, to_apply=add\n b = f32[100000,32] broadcast(a), dimensions={1}\n"
                           " d = f32[100000,32] subtract(p, b)\n"
                           " ROOT c = f32[32] reduce(d, zero), dimensions={0}, to_apply=add");
  EXPECT_EQ(kinds(*m), (std::vector<std::string>{"reduce", "reduce"}));
}

TEST(Rows, FewLongRowsAreRefused) {
  const auto m = over_rows("2,1000000",
                           " r = f32[2] reduce(p, zero), dimensions={1}, to_apply=add\n b = f32[2,1000000] broadcast(r), dimensions={0}\n"
                           " ROOT s = f32[2,1000000] subtract(p, b)");
  EXPECT_EQ(kinds(*m), (std::vector<std::string>{"reduce", "loop"}));
  EXPECT_EQ(decision(*named(*m, "r"), "not_rows"), "there are few rows, and they are long");
}

TEST(Rows, LongColumnsAreRefused) {
  const auto m = over_rows("100000,32",
                           " r = f32[32] reduce(p, zero), dimensions={0}, to_apply=add\n b = f32[100000,32] broadcast(r), dimensions={1}\n"
                           " ROOT s = f32[100000,32] subtract(p, b)");
  EXPECT_EQ(kinds(*m), (std::vector<std::string>{"reduce", "loop"}));
  EXPECT_EQ(decision(*named(*m, "r"), "not_rows"), "the columns are too long to stay near");
}

// What RMS norm's gradients are made of: dx over rows, and a sum over `rows` of them for each column.
std::string norm_gradients(const std::string& rows, const std::string& columns, const std::string& sum, const std::string& more = "",
                           const std::string& results = "", const std::string& roots = "") {
  const std::string full = "f32[" + rows + "," + columns + "]", row = "f32[" + rows + "]";
  return kAdd + "ENTRY e { x = " + full + " parameter(0)\n dy = " + full + " parameter(1)\n z = f32[] constant(0)\n" +
         " q = " + full + " multiply(x, x)\n s = " + row + " reduce(q, z), dimensions={1}, to_apply=add\n i = " + row +
         " rsqrt(s)\n b = " + full + " broadcast(i), dimensions={0}\n h = " + full + " multiply(x, b)\n d = " + full +
         " multiply(h, dy)\n t = " + row + " reduce(d, z), dimensions={1}, to_apply=add\n tb = " + full +
         " broadcast(t), dimensions={0}\n dx = " + full + " subtract(dy, tb)\n " + sum + more + "\n ROOT r = (" + full + ", f32[" + columns +
         "]" + results + ") tuple(dx, g" + roots + ") }";
}
std::string sum_in_blocks(int blocks, int rows) {
  const std::string n = std::to_string(blocks), cut = "f32[" + n + "," + std::to_string(rows / blocks) + ",64]";
  return "c = " + cut + " bitcast(d)\n p = f32[" + n + ",64] reduce(c, z), dimensions={1}, to_apply=add\n"
         " g = f32[64] reduce(p, z), dimensions={0}, to_apply=add";
}
std::string reduce_decision(const hlo::Module& module, const std::string& key) {
  std::string found;
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (i.opcode() == Opcode::Reduce) found += decision(i, key);
  return found;
}

TEST(ColumnSums, OfANormsGradientsAreMadeBesideItsRows) {
  const auto small = fused(norm_gradients("16", "64", "g = f32[64] reduce(d, z), dimensions={0}, to_apply=add"));
  EXPECT_EQ(kernels(*small).size(), 1u) << text::print(*small);
  const auto large = fused(norm_gradients("32768", "64", sum_in_blocks(32, 32768)));
  EXPECT_EQ(kernels(*large).size(), 2u) << text::print(*large);  // the second one adds up what the blocks give
  EXPECT_EQ(reduce_decision(*large, "columns"), "blocks of 1024 rows");
}

TEST(ColumnSums, OfAnArrayThatTheRowsReadToo) {
  const auto m = fused(norm_gradients("16", "64", "g = f32[64] reduce(dy, z), dimensions={0}, to_apply=add"));
  EXPECT_EQ(kernels(*m).size(), 1u) << text::print(*m);
}

TEST(ColumnSums, OfWhatIsMadeOfSuchAnArray) {
  const auto m = fused(norm_gradients("16", "64",
                                      "n = f32[16,64] negate(dy)\n m = f32[16,64] abs(n)\n"
                                      " g = f32[64] reduce(m, z), dimensions={0}, to_apply=add"));
  EXPECT_EQ(kernels(*m).size(), 1u) << text::print(*m);
}

TEST(ColumnSums, SayWhyTheyAreMadeApart) {
  const auto reason = [](const std::string& text) { return reduce_decision(*fused(text), "not_rows"); };
  EXPECT_EQ(reason(norm_gradients("4096", "64", "g = f32[64] reduce(d, z), dimensions={0}, to_apply=add")),
            "it takes all rows one after the other, so that they cannot be shared out");
  EXPECT_EQ(reason(norm_gradients("32768", "64", sum_in_blocks(4, 32768))), "there are few blocks of rows");
  EXPECT_EQ(reason(norm_gradients("16", "64",
                                  "w = f32[] parameter(2)\n g = f32[64] reduce(d, w), dimensions={0}, to_apply=add")),
            "its initial value is computed");
  EXPECT_EQ(reason(norm_gradients("32768", "64", sum_in_blocks(32, 32768),
                                  "\n n = f32[32,1024,64] negate(c)", ", f32[32,1024,64]", ", n")),
            "its blocks are used by others");
}

// dx waits for g, which would wait for the whole kernel.
TEST(ColumnSums, AKernelDoesNotWaitForItself) {
  const auto m = fused(kAdd +
                       "ENTRY e { x = f32[16,64] parameter(0)\n z = f32[] constant(0)\n"
                       " g = f32[64] reduce(x, z), dimensions={0}, to_apply=add\n gr = f32[64] reverse(g), dimensions={0}\n gb = f32[16,64] broadcast(gr), dimensions={1}\n"
                       " a = f32[16,64] subtract(x, gb)\n s = f32[16] reduce(a, z), dimensions={1}, to_apply=add\n"
                       " b = f32[16,64] broadcast(s), dimensions={0}\n u = f32[16,64] subtract(a, b)\n"
                       " v = f32[16,64] subtract(u, x)\n ROOT t = (f32[16,64], f32[64]) tuple(v, g) }");
  EXPECT_GT(kernels(*m).size(), 1u) << text::print(*m);
  EXPECT_EQ(reduce_decision(*m, "not_rows"), "the rows wait for it");
}

TEST(Fuse, ACostlyValueUnderABroadcastIsComputedOnce) {
  const auto m = fused(
      "ENTRY e { p = f32[9] parameter(0)\n x = f32[9,7] parameter(1)\n q = f32[9] tanh(p)\n n = f32[9] negate(q)\n"
      " b = f32[9,7] broadcast(n), dimensions={0}\n ROOT s = f32[9,7] multiply(x, b) }");
  ASSERT_EQ(kernels(*m).size(), 2u);
  EXPECT_EQ(decision(*kernels(*m)[0], "not_fused"), "it would be computed once for each repetition");
}

TEST(Fuse, AValueThatIsReturnedIsOneMoreResult) {
  const auto m = fused(
      "ENTRY e { p = f32[9] parameter(0)\n q = f32[9] tanh(p)\n r = f32[9] negate(q)\n"
      " ROOT t = (f32[9], f32[9]) tuple(q, r) }");
  ASSERT_EQ(kernels(*m).size(), 1u);
  EXPECT_TRUE(kernels(*m)[0]->shape().is_tuple());
}

// An iota under a broadcast that a sort wants as an array, and a kernel computes by itself.
TEST(Fuse, WhatIsFreeIsMadeInEachKernelAndAsAnArray) {
  const auto m = fused(
      "less { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
      "ENTRY e { p = s32[4,9] parameter(0)\n i = s32[9] iota(), iota_dimension=0\n"
      " j = s32[4,9] broadcast(i), dimensions={1}\n s = s32[4,9] sort(j), dimensions={1}, to_apply=less\n"
      " x = s32[4,9] add(p, j)\n ROOT t = (s32[4,9], s32[4,9]) tuple(s, x) }");
  for (const Instruction& i : m->entry()->instructions()) EXPECT_NE(i.opcode(), Opcode::Iota) << text::print(*m);
}

TEST(Fuse, AValueThatIsReturnedInAnotherLayoutIsOneMoreResult) {
  const auto m = fused(
      "ENTRY e { p = f32[9,7]{1,0} parameter(0)\n a = f32[9,7]{1,0} negate(p)\n b = f32[9,7]{1,0} add(a, p)\n"
      " c = f32[9,7]{0,1} copy(a)\n ROOT t = (f32[9,7]{1,0}, f32[9,7]{0,1}) tuple(b, c) }");
  ASSERT_EQ(kernels(*m).size(), 1u);
  EXPECT_EQ(to_string(kernels(*m)[0]->shape()), "(f32[9,7]{1,0}, f32[9,7]{0,1})");
}

TEST(Fuse, ACopyToAnotherLayoutThatComesBackIsNoResult) {
  const auto m = fused(
      "ENTRY e { p = f32[9,9]{1,0} parameter(0)\n a = f32[9,9]{1,0} negate(p)\n c = f32[9,9]{0,1} copy(a)\n"
      " d = f32[9,9]{1,0} dot(c, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " ROOT b = f32[9,9]{1,0} add(a, d) }");
  EXPECT_GE(kernels(*m).size(), 2u);
}

TEST(Fuse, NoKernelWaitsForItself) {
  // q and s could be one kernel by shape, but s needs the dot, and the dot needs q.
  const auto m = fused(
      "ENTRY e { p = f32[4,4] parameter(0)\n q = f32[4,4] tanh(p)\n n = f32[4,4] negate(q)\n"
      " d = f32[4,4] dot(n, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " ROOT s = f32[4,4] add(d, q) }");
  EXPECT_GE(kernels(*m).size(), 3u);
}

TEST(Fuse, TheBaseOfAnUpdateIsABuffer) {
  const auto update = [](const std::string& window) {
    return fused("ENTRY e { p = f32[9] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n n = f32[9] negate(p)\n" + window +
                 " u = f32[2] exponential(w)\n ROOT d = f32[9] dynamic-update-slice(n, u, i) }");
  };
  // Each element is read, then written, at its own place.
  const auto m = update(" w = f32[2] dynamic-slice(n, i), dynamic_slice_sizes={2}\n");
  ASSERT_EQ(kernels(*m).size(), 2u) << text::print(*m);
  const Instruction& root = *m->entry()->root();
  EXPECT_EQ(decision(root, "kernel"), "window-update");
  EXPECT_EQ(root.called(0)->root()->operand(0)->opcode(), Opcode::Parameter);
  EXPECT_EQ(kernels(*update(" w = f32[2] dynamic-slice(n, j), dynamic_slice_sizes={2}\n")).size(), 3u);
  EXPECT_EQ(kernels(*update(" v = f32[2] dynamic-slice(n, i), dynamic_slice_sizes={2}\n w = f32[2] reverse(v), dimensions={0}\n")).size(), 3u);
}

// What reads an array before another kernel updates it may be in the kernel of an update before that one.
TEST(Fuse, UpdatesReadEachOthersBasesInOrder) {
  const auto two = [](const std::string& read) {
    return fused("ENTRY e { x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n i = s32[] constant(1)\n ys = f32[7] slice(y), slice={[0:7]}\n"
                 " yn = f32[7] negate(ys)\n xd = f32[9] dynamic-update-slice(x, yn, i)\n xs = f32[7] slice(" + read + "), slice={[2:9]}\n"
                 " xn = f32[7] negate(xs)\n yd = f32[9] dynamic-update-slice(y, xn, i)\n ROOT t = (f32[9], f32[9]) tuple(xd, yd) }");
  };
  EXPECT_EQ(kernels(*two("xd")).size(), 2u);
  EXPECT_EQ(kernels(*two("x")).size(), 4u);  // each from the old other one
}

// A fill that is updated and compared with as well: each has its own.
TEST(Fuse, AFillThatIsUpdatedIsAnotherOneThanThatWhichIsRead) {
  const auto m = fused(
      "ENTRY e { p = s32[9] parameter(0)\n i = s32[] parameter(1)\n seven = s32[] constant(7)\n"
      " b = s32[9] broadcast(seven), dimensions={}\n c = s32[9] maximum(p, b)\n w = s32[2] slice(c), slice={[0:2]}\n"
      " ROOT d = s32[9] dynamic-update-slice(b, w, i) }");
  const auto k = kernels(*m);
  ASSERT_EQ(k.size(), 2u) << text::print(*m);
  EXPECT_EQ(decision(*m->entry()->root(), "kernel"), "window-update");
  // It computes what it reads from the parameter and its own sevens, and writes over the other kernel's.
  EXPECT_EQ(m->entry()->root()->num_operands(), 3) << text::print(*m);
  EXPECT_TRUE(k[0]->operands().empty()) << text::print(*m);
}

// Dots keep the readers apart.
std::string read_by(int count, const std::string& value) {
  std::string text, operands, shapes;
  for (int k = 0; k < count; ++k) {
    const std::string n = std::to_string(k);
    text += " d" + n + " = f32[16,16] dot(p, p), lhs_contracting_dims={" + std::string(k % 2 == 0 ? "0" : "1") +
            "}, rhs_contracting_dims={" + std::string(k % 4 < 2 ? "0" : "1") + "}\n m" + n + " = f32[16,16] multiply(d" + n +
            ", " + value + ")\n t" + n + " = f32[16,16] dot(m" + n +
            ", p), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n";
    operands += (k > 0 ? ", t" : "t") + n;
    shapes += k > 0 ? ", f32[16,16]" : "f32[16,16]";
  }
  return text + " ROOT t = (" + shapes + ") tuple(" + operands + ") }";
}

bool is_written(const hlo::Module& m, Opcode opcode) {
  for (const Instruction* k : kernels(m)) {
    const Instruction& root = *k->called(0)->root();
    if (root.opcode() == opcode) return true;
    for (const Instruction* r : root.operands())
      if (root.opcode() == Opcode::Tuple && r->opcode() == opcode) return true;
  }
  return false;
}

TEST(Fuse, WhatRepeatsASmallArrayIsNeverWritten) {
  const auto m = fused(
      "ENTRY e { p = f32[16,16] parameter(0)\n x = f32[16] parameter(1)\n"
      " b = f32[16,16] broadcast(x), dimensions={1}\n" + read_by(5, "b"));
  EXPECT_FALSE(is_written(*m, Opcode::Broadcast)) << text::print(*m);
}

// y + z + w in two kernels, one of which computes it at its own elements: six reads, or five with what is written.
TEST(Fuse, ASumOfManyArraysForTwoKernelsIsWrittenByOne) {
  const std::string head =
      "ENTRY e { p = f32[16,16] parameter(0)\n y = f32[16,16] parameter(1)\n z = f32[16,16] parameter(2)\n"
      " w = f32[16,16] parameter(3)\n a = f32[16,16] add(y, z)\n";
  EXPECT_TRUE(is_written(*fused(head + " b = f32[16,16] add(a, w)\n" + read_by(2, "b")), Opcode::Add));
  EXPECT_FALSE(is_written(*fused(head + read_by(2, "a")), Opcode::Add));
}

TEST(Fuse, ADotReadsASliceWhereItLies) {
  const auto m = fused(
      "ENTRY e { p = f32[3,8,8] parameter(0)\n x = f32[8] parameter(1)\n i = s32[] parameter(2)\n z = s32[] constant(0)\n"
      " w = f32[1,8,8] dynamic-slice(p, i, z, z), dynamic_slice_sizes={1,8,8}\n v = f32[8,8] bitcast(w)\n"
      " ROOT d = f32[8] dot(x, v), lhs_contracting_dims={0}, rhs_contracting_dims={0} }");
  EXPECT_EQ(kernels(*m).size(), 1u);
}

// As XLA orders the copies of a loop's state: each value is read before the next one is written.
TEST(Fuse, ControlEdgesBetweenKernelsMakeNoCircle) {
  const auto m = fused(
      "ENTRY e { p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n a = f32[4] negate(p)\n b = f32[4] negate(q)\n"
      " c = f32[4] exponential(a), control-predecessors={b}\n d = f32[4] exponential(b), control-predecessors={a}\n"
      " ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d) }");
  EXPECT_EQ(m->clone()->entry()->num_instructions(), m->entry()->num_instructions());  // needs an order of all
}

TEST(Fuse, KeepsWhatRealProgramsMean) {
  for (const std::string name : {"r05-gpt-decode-step", "r09-selective-scan", "r31-nbody-leapfrog", "r35-kmeans"}) {
    const std::string path = std::string(HLOOM_SOURCE_DIR) + "/tests/programs/" + name;
    const auto folder = arrays::read_corpus_folder(path);
    ASSERT_TRUE(folder) << folder.error().message();
    std::ifstream file(folder->program_path);
    std::ostringstream text;
    text << file.rdbuf();
    auto module = text::parse_module(text.str());
    ASSERT_TRUE(module) << module.error().message();
    const auto want = interp::interpret(**module, folder->inputs[0]);
    ASSERT_TRUE(want) << want.error().message();
    ASSERT_TRUE(fuse(**module));
    ASSERT_TRUE(hlo::check_module(**module));
    const auto got = interp::interpret(**module, folder->inputs[0]);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_TRUE(*got == *want) << name;
    add_taps(**module);
    const auto verified = hlo::check_module(**module);
    ASSERT_TRUE(verified) << name << ": " << verified.error().message();
    const auto tapped = interp::interpret(**module, folder->inputs[0]);
    ASSERT_TRUE(tapped) << tapped.error().message();
    EXPECT_TRUE(*tapped == *want) << name;
  }
}

TEST(Regions, SmallRunsTogetherLargeAlone) {
  auto m = fused(kAdd +
                 "ENTRY e { p = f32[9] parameter(0)\n x = f32[100000] parameter(1)\n z = f32[] constant(0)\n"
                 " a = f32[] reduce(p, z), dimensions={0}, to_apply=add\n b = f32[100000] broadcast(a), dimensions={}\n"
                 " c = f32[100000] multiply(x, b)\n d = f32[] reduce(c, z), dimensions={0}, to_apply=add\n"
                 " ROOT r = f32[] add(d, a) }");
  mark_regions(*m);
  for (const Instruction* k : kernels(*m)) {
    const bool large = k->shape().num_elements() > 1000 || k->operand(0)->shape().num_elements() > 1000 ||
                       (k->num_operands() > 1 && k->operand(1)->shape().num_elements() > 1000);
    EXPECT_EQ(decision(*k, "region").empty(), large) << k->name();
  }
}

// A loop that was unrolled has the same dot many times: apart they are equal kernels.
TEST(Regions, ManyDotsGoByThemselves) {
  const auto in_regions = [](int count, const std::string& size) {
    const std::string array = "f32[" + size + "," + size + "]";
    std::string text = "ENTRY e { x0 = " + array + " parameter(0)\n w = " + array + " parameter(1)\n";
    for (int n = 0; n < count; ++n)
      text += " d" + std::to_string(n) + " = " + array + " dot(x" + std::to_string(n) + ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n x" +
              std::to_string(n + 1) + " = " + array + " tanh(d" + std::to_string(n) + ")\n";
    auto m = fused(text + " ROOT r = " + array + " negate(x" + std::to_string(count) + ") }");
    mark_regions(*m);
    return std::ranges::count_if(kernels(*m), [](const Instruction* k) {
      return !decision(*k, "region").empty() && std::ranges::any_of(k->called(0)->instructions(), [](const Instruction& i) { return i.opcode() == Opcode::Dot; });
    });
  };
  EXPECT_EQ(in_regions(3, "32"), 3);
  EXPECT_EQ(in_regions(12, "32"), 0);
  EXPECT_EQ(in_regions(12, "8"), 12);  // shorter than a step
}

}  // namespace
}  // namespace hloom::fusion
