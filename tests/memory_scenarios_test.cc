// Scenarios of buffer sharing and of the kernels' call, each as a small program: it gives the interpreter's values in
// regions, step by step, and under the watch of a checked run, which also says that no value is read where another lies.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "arrays/compare.h"
#include "base/run_status.h"
#include "compiler/checked_run.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "literals.h"

namespace hloom {
namespace {

using Values = std::vector<hlo::Literal>;

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << "\n" << text;
  return module ? *std::move(module) : nullptr;
}

enum class How : std::uint8_t { Regions, Steps, Watched };

Expected<compiler::Compiled> compile(const std::string& text, How how) {
  compiler::Options options;
  options.regions = how == How::Regions;
  options.check_memory = options.check_bounds = how == How::Watched;
  options.verify_each = true;
  return compiler::compile(parse(text), options);
}

Values arguments_of(const std::vector<Shape>& shapes) {
  Values values;
  for (const Shape& shape : shapes) values.push_back(tests::numbered(shape, std::ssize(values)));
  return values;
}

void expect_interpreted(const std::string& text) {
  const auto module = parse(text);
  if (module == nullptr) return;
  const Values arguments = arguments_of(compiler::parameter_leaves(*module));
  const auto whole = interp::interpret(*module, compiler::arguments_of(*module, arguments));
  ASSERT_TRUE(whole) << whole.error().message();
  Values want;
  for (const hlo::Literal* leaf : hlo::leaves(*whole)) want.push_back(*leaf);
  for (const How how : {How::Regions, How::Steps, How::Watched}) {
    auto compiled = compile(text, how);
    ASSERT_TRUE(compiled) << compiled.error().message() << "\n" << text;
    const auto parameters = compiler::parameter_leaves(*compiled->module),
               results = compiler::result_leaves(*compiled->module);
    const auto executor = compiler::make_executor(*std::move(compiled));
    ASSERT_TRUE(executor) << executor.error().message();
    for (const int threads : {1, 3}) {
      runtime::ThreadPool pool(threads);
      const auto got = compiler::execute_literals(**executor, parameters, results, arguments, pool);
      ASSERT_TRUE(got) << got.error().message() << "\n" << text;
      EXPECT_EQ(arrays::compare_results(*got, want, std::vector{arrays::Tolerance::exact()}), std::nullopt)
          << "way " << static_cast<int>(how) << "\n" << text;
    }
  }
}

std::string entry(const std::string& body, const std::string& computations = "", const std::string& header = "") {
  return "HloModule m" + header + "\n" + computations + "ENTRY e {\n" + body + "}\n";
}

// A loop of `trips` rounds over (counter, state...); `body` names what comes back and sees the counter i.
std::string loop(const std::string& name, const std::string& state, int trips, const std::string& body,
                 const std::string& next) {
  const std::string type = "(s32[], " + state + ")";
  return name + ".body { s = " + type + " parameter(0)\n i = s32[] get-tuple-element(s), index=0\n" + body +
         " one = s32[] constant(1)\n i.next = s32[] add(i, one)\n ROOT r = " + type + " tuple(i.next, " + next + ") }\n" +
         name + ".cond { s = " + type + " parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(" +
         std::to_string(trips) + ")\n ROOT c = pred[] compare(i, n), direction=LT }\n";
}

constexpr const char* kXy = " x = f32[40] get-tuple-element(s), index=1\n y = f32[40] get-tuple-element(s), index=2\n";
const std::string kPair = "f32[40], f32[40]", kState = "(s32[], f32[40], f32[40])";

std::string run_loop(const std::string& name, const std::string& result, const std::string& init) {
  return " " + result + " = " + kState + " while(" + init + "), condition=" + name + ".cond, body=" + name + ".body\n";
}

// --- Buffer sharing: the scenarios of its list, by number -----------------------------------------------------------

TEST(BufferScenarios, S01_ConstantsAreSharedAndNotWritten) {
  expect_interpreted(entry(
      " x = f32[4] parameter(0)\n c = f32[4] constant({1,2,3,4})\n d = f32[4] constant({1,2,3,4})\n"
      " a = f32[4] add(x, c)\n b = f32[4] multiply(x, d)\n"
      " ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d)\n"));
}

TEST(BufferScenarios, S03_ResultsOfOtherSizesThanTheirOperands) {
  expect_interpreted(entry(" x = f32[64] parameter(0)\n n = f32[64] negate(x)\n s = f32[10] slice(n), slice={[3:13]}\n"
                           " p = f32[32] slice(n), slice={[0:64:2]}\n ROOT t = (f32[10], f32[32]) tuple(s, p)\n"));
}

TEST(BufferScenarios, S04_WhatIsReturnedAsItIs) {
  expect_interpreted(entry(" p = (f32[2], (s32[], f32[3])) parameter(0)\n i = (s32[], f32[3]) get-tuple-element(p), index=1\n"
                           " x = f32[3] get-tuple-element(i), index=1\n c = f32[3] constant({5,6,7})\n"
                           " n = f32[3] negate(x)\n"
                           " q = (f32[3], f32[3]) tuple(n, x)\n"
                           " ROOT t = (f32[3], f32[3], (f32[3], f32[3]), f32[3]) tuple(x, c, q, n)\n"));
}

TEST(BufferScenarios, S05_AChainOfBitcastsIsTheResult) {
  expect_interpreted(entry(" x = f32[6,4] parameter(0)\n n = f32[6,4] negate(x)\n a = f32[24] bitcast(n)\n"
                           " b = f32[2,12] bitcast(a)\n ROOT c = f32[3,8] bitcast(b)\n"));
  expect_interpreted(entry(" x = f32[6,4] parameter(0)\n a = f32[24] bitcast(x)\n ROOT b = f32[2,12] bitcast(a)\n"));
}

TEST(BufferScenarios, S06_LoopsOfEveryKind) {
  const std::string init = " x = f32[40] parameter(0)\n y = f32[40] parameter(1)\n z = s32[] constant(0)\n t = " + kState +
                           " tuple(z, x, y)\n same = " + kState + " tuple(z, x, x)\n";
  const std::string ends = " a = f32[40] get-tuple-element(w), index=1\n b = f32[40] get-tuple-element(w), index=2\n"
                           " ROOT r = (f32[40], f32[40]) tuple(a, b)\n";
  const std::string add = std::string(kXy) + " u = f32[40] add(x, y)\n";
  const std::string swap = loop("l", kPair, 5, kXy, "y, x"), update = loop("l", kPair, 5, add, "u, x");
  expect_interpreted(entry(init + run_loop("l", "w", "t") + ends, swap));
  expect_interpreted(entry(init + run_loop("l", "w", "t") + ends, update));
  expect_interpreted(entry(init + run_loop("l", "w", "same") + ends, update));
  expect_interpreted(entry(init + run_loop("l", "w", "t") + ends, loop("l", kPair, 5, add, "x, u")));
  expect_interpreted(entry(init + run_loop("l", "w", "t") + ends,
                           loop("l", kPair, 5, std::string(kXy) + " c = f32[40] iota(), iota_dimension=0\n", "c, x")));
  // Two loops with one init, one behind the other, and the init used afterwards.
  const std::string twice = run_loop("l", "w", "t") + run_loop("k", "v", "t");
  const std::string sums = " a = f32[40] get-tuple-element(w), index=1\n b = f32[40] get-tuple-element(v), index=1\n"
                           " d = f32[40] subtract(a, b)\n ROOT r = (f32[40], f32[40], f32[40]) tuple(d, x, b)\n";
  expect_interpreted(entry(init + twice + sums, update + loop("k", kPair, 3, add, "y, u")));
  const std::string chained = run_loop("l", "v", "t") + run_loop("k", "w", "v");
  expect_interpreted(entry(init + chained + ends, update + loop("k", kPair, 3, kXy, "y, x")));
  // A loop in a loop.
  const std::string nested = " j = s32[] constant(0)\n" + std::string(kXy) + " q = " + kState + " tuple(j, x, y)\n" +
                             run_loop("k", "v", "q") + " a = f32[40] get-tuple-element(v), index=1\n b = f32[40] get-tuple-element(v), index=2\n";
  expect_interpreted(entry(init + run_loop("l", "w", "t") + ends,
                           loop("k", kPair, 3, add, "y, u") + loop("l", kPair, 4, nested, "b, a")));
}

TEST(BufferScenarios, S08_BranchesThatPassOn) {
  const std::string branch = "(f32[40], f32[40])";
  const std::string through = "p { t = " + branch + " parameter(0)\n x = f32[40] get-tuple-element(t), index=0\n"
                              " y = f32[40] get-tuple-element(t), index=1\n ROOT r = " + branch + " tuple(x, y) }\n";
  const std::string changed = "q { t = " + branch + " parameter(0)\n x = f32[40] get-tuple-element(t), index=0\n"
                              " y = f32[40] get-tuple-element(t), index=1\n n = f32[40] negate(y)\n ROOT r = " + branch +
                              " tuple(n, x) }\n";
  for (const char* order : {"p, q", "q, p"})
    for (const char* index : {"0", "1", "7"})
      expect_interpreted(entry(" x = f32[40] parameter(0)\n y = f32[40] parameter(1)\n k = s32[] constant(" +
                                   std::string(index) + ")\n t = " + branch + " tuple(x, y)\n ROOT w = " + branch +
                                   " conditional(k, t, t), branch_computations={" + order + "}\n",
                               through + changed));
}

TEST(BufferScenarios, S09toS11_Donations) {
  const std::string inputs = " x = f32[40] parameter(0)\n y = f32[40] parameter(1)\n";
  const std::string two = ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }";
  const std::string crossed = ", input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, may-alias) }";
  // Used after its output is there; crossed; returned as it came.
  const std::string late = " a = f32[40] negate(y)\n b = f32[40] add(x, a)\n c = f32[40] multiply(x, b)\n"
                           " ROOT r = (f32[40], f32[40]) tuple(b, c)\n";
  for (const std::string& header : {two, crossed}) {
    expect_interpreted(entry(inputs + late, "", header));
    expect_interpreted(entry(inputs + " ROOT r = (f32[40], f32[40]) tuple(x, y)\n", "", header));
    expect_interpreted(entry(inputs + " ROOT r = (f32[40], f32[40]) tuple(y, x)\n", "", header));
  }
  expect_interpreted(entry(" p = (f32[40], f32[40]) parameter(0)\n x = f32[40] get-tuple-element(p), index=0\n"
                           " y = f32[40] get-tuple-element(p), index=1\n a = f32[40] subtract(y, x)\n"
                           " ROOT r = (f32[40], f32[40]) tuple(a, y)\n",
                           "", ", input_output_alias={ {0}: (0, {1}, may-alias) }"));
}

TEST(BufferScenarios, S12toS14_UpdatesWithOtherReaders) {
  const std::string inputs = " x = f32[40] parameter(0)\n i = s32[] constant(7)\n b = f32[40] negate(x)\n"
                             " u = f32[4] slice(x), slice={[0:4]}\n";
  expect_interpreted(entry(inputs + " d = f32[40] dynamic-update-slice(b, u, i)\n s = f32[40] add(d, b)\n"
                                    " ROOT r = (f32[40], f32[40]) tuple(d, s)\n"));
  expect_interpreted(entry(inputs + " w = f32[4] slice(b), slice={[20:24]}\n d = f32[40] dynamic-update-slice(b, w, i)\n"
                                    " ROOT r = (f32[40], f32[4]) tuple(d, w)\n"));
  expect_interpreted(entry(inputs + " w = f32[4] slice(b), slice={[8:12]}\n v = f32[4] reverse(w), dimensions={0}\n"
                                    " d = f32[40] dynamic-update-slice(b, v, i)\n a = f32[40] abs(b)\n"
                                    " ROOT r = (f32[40], f32[40]) tuple(d, a)\n"));
}

// Two fields that step by step are made from each other's neighbours, as finite differences in time do.
TEST(BufferScenarios, UpdatesThatReadTheirOwnWindowsAndEachOthers) {
  const std::string type = "(s32[], f32[400], f32[400])";
  const std::string step =
      " x = f32[400] get-tuple-element(s), index=1\n y = f32[400] get-tuple-element(s), index=2\n at = s32[] constant(1)\n"
      " xw = f32[398] slice(x), slice={[1:399]}\n yl = f32[398] slice(y), slice={[0:398]}\n yr = f32[398] slice(y), slice={[1:399]}\n"
      " dy = f32[398] subtract(yr, yl)\n xn = f32[398] add(xw, dy)\n x.next = f32[400] dynamic-update-slice(x, xn, at)\n"
      " yw = f32[398] slice(y), slice={[1:399]}\n xl = f32[398] slice(x.next), slice={[1:399]}\n xr = f32[398] slice(x.next), slice={[2:400]}\n"
      " dx = f32[398] subtract(xr, xl)\n yn = f32[398] subtract(yw, dx)\n y.next = f32[400] dynamic-update-slice(y, yn, at)\n";
  // The same of both old fields: one of them is saved.
  std::string both = step;
  for (std::size_t at; (at = both.find("slice(x.next)")) != std::string::npos;) both.replace(at, 13, "slice(x)");
  for (const std::string& body : {step, both})
    expect_interpreted(entry(" z = s32[] constant(0)\n x = f32[400] parameter(0)\n y = f32[400] parameter(1)\n t = " + type + " tuple(z, x, y)\n ROOT w = " +
                                 type + " while(t), condition=l.cond, body=l.body\n",
                             loop("l", "f32[400], f32[400]", 5, body, "x.next, y.next")));
}

TEST(BufferScenarios, S15_SortsOfOneAndOfSeveral) {
  const std::string one = "lt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT l = pred[] compare(a, b), direction=LT }\n";
  const std::string two = "lt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n"
                          " d = s32[] parameter(3)\n ROOT l = pred[] compare(a, b), direction=GT }\n";
  for (const char* n : {"40", "5000"}) {
    const std::string f = "f32[" + std::string(n) + "]", s = "s32[" + std::string(n) + "]";
    expect_interpreted(entry(" x = " + f + " parameter(0)\n m = " + f + " negate(x)\n s = " + f +
                                 " sort(x), dimensions={0}, to_apply=lt\n ROOT r = (" + f + ", " + f + ") tuple(s, m)\n",
                             one));
    expect_interpreted(entry(" x = " + f + " parameter(0)\n n = " + f + " negate(x)\n k = " + s +
                                 " iota(), iota_dimension=0\n s = (" + f + ", " + s +
                                 ") sort(n, k), dimensions={0}, is_stable=true, to_apply=lt\n a = " + f +
                                 " get-tuple-element(s), index=0\n b = " + s + " get-tuple-element(s), index=1\n ROOT r = (" +
                                 s + ", " + f + ", " + f + ") tuple(b, a, n)\n",
                             two));
  }
}

// --- The kernels' call: the scenarios of its list, by number ---------------------------------------------------------

// Arrays of several sizes in one: pieces of a concatenate, slices of arrays, of slices and of parameters.
TEST(BufferScenarios, S18_ArraysInsideOfOthers) {
  const auto dot = [](const std::string& name, const std::string& a, const std::string& b, int rows = 8) {
    return " " + name + " = f32[" + std::to_string(rows) + ",8] dot(" + a + ", " + b +
           "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  };
  const auto sort = [](const std::string& name, const std::string& operand, int rows = 8) {
    return " " + name + " = f32[" + std::to_string(rows) + ",8] sort(" + operand + "), dimensions={1}, to_apply=less\n";
  };
  const std::string less = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                           " ROOT l = pred[] compare(a, b), direction=LT }\n";
  const std::string head = " x = f32[8,8] parameter(0)\n y = f32[8,8] parameter(1)\n" + dot("a", "x", "y") + dot("b", "y", "x");
  const std::string both = " c = f32[16,8] concatenate(a, b), dimensions={0}\n";
  // Read, returned, with a piece that is read again, of one piece twice, of another concatenate.
  expect_interpreted(entry(head + both + dot("d", "c", "x", 16) + " ROOT t = (f32[16,8]) tuple(d)\n"));
  expect_interpreted(entry(head + both + " ROOT t = (f32[16,8]) tuple(c)\n"));
  expect_interpreted(entry(head + both + dot("d", "c", "b", 16) + " ROOT t = (f32[16,8], f32[16,8]) tuple(c, d)\n"));
  expect_interpreted(entry(head + " c = f32[16,8] concatenate(a, a), dimensions={0}\n" + dot("d", "c", "b", 16) +
                           " ROOT t = (f32[16,8], f32[8,8]) tuple(d, b)\n"));
  expect_interpreted(entry(head + both + dot("e", "c", "x", 16) + " f = f32[32,8] concatenate(c, e), dimensions={0}\n" +
                           dot("g", "f", "y", 32) + " ROOT t = (f32[32,8]) tuple(g)\n"));
  // Slices that overlap, of slices, of what is written over afterwards, of a parameter.
  const std::string sliced = both + " s = f32[8,8] slice(c), slice={[0:8], [0:8]}\n u = f32[8,8] slice(c), slice={[4:12], [0:8]}\n" +
                             sort("p", "s") + sort("q", "u");
  expect_interpreted(entry(head + sliced + " ROOT t = (f32[8,8], f32[8,8], f32[16,8]) tuple(p, q, c)\n", less));
  expect_interpreted(entry(head + sliced + " z = s32[] constant(0)\n k = s32[] constant(3)\n"
                           " w = f32[16,8] dynamic-update-slice(c, x, k, z)\n" + sort("v", "w", 16) + dot("d", "p", "q") +
                           " ROOT t = (f32[16,8], f32[8,8]) tuple(v, d)\n", less));
  expect_interpreted(entry(" x = f32[24,8] parameter(0)\n s = f32[8,8] slice(x), slice={[8:16], [0:8]}\n" + sort("p", "s") +
                           " ROOT t = (f32[8,8]) tuple(p)\n", less));
  // In each round of a loop.
  const std::string round = " x = f32[8,8] get-tuple-element(s), index=1\n y = f32[8,8] get-tuple-element(s), index=2\n" +
                            dot("a", "x", "y") + dot("b", "y", "x") + both +
                            " u = f32[8,8] slice(c), slice={[2:10], [0:8]}\n" + sort("p", "u") + dot("d", "c", "p", 16) +
                            " v = f32[8,8] slice(d), slice={[0:8], [0:8]}\n w = f32[8,8] slice(d), slice={[8:16], [0:8]}\n" +
                            sort("n", "v") + sort("m", "w");
  expect_interpreted(entry(" x = f32[8,8] parameter(0)\n y = f32[8,8] parameter(1)\n z = s32[] constant(0)\n"
                           " t = (s32[], f32[8,8], f32[8,8]) tuple(z, x, y)\n"
                           " ROOT r = (s32[], f32[8,8], f32[8,8]) while(t), condition=l.cond, body=l.body\n",
                           less + loop("l", "f32[8,8], f32[8,8]", 4, round, "m, n")));
}

TEST(KernelScenarios, S06_NoArguments) {
  expect_interpreted(entry(" ROOT i = s32[100] iota(), iota_dimension=0\n"));
  expect_interpreted(entry(" c = f32[] constant(3)\n ROOT b = f32[1000] broadcast(c), dimensions={}\n"));
}

TEST(KernelScenarios, S07_AHundredArguments) {
  std::string text, sum = "x0";
  for (int k = 0; k < 100; ++k) text += " x" + std::to_string(k) + " = s32[50] parameter(" + std::to_string(k) + ")\n";
  for (int k = 1; k < 100; ++k) {
    const std::string next = "sum." + std::to_string(k);
    text += (k == 99 ? " ROOT " : " ") + next + " = s32[50] add(" + sum + ", x" + std::to_string(k) + ")\n";
    sum = next;
  }
  expect_interpreted(entry(text));
}

TEST(KernelScenarios, S08_TuplesAreTheirLeavesInOrder) {
  expect_interpreted(entry(" p = ((s32[3], f32[2]), (s32[5], (f32[2], s32[3]))) parameter(0)\n"
                           " a = (s32[3], f32[2]) get-tuple-element(p), index=0\n x = s32[3] get-tuple-element(a), index=0\n"
                           " b = (s32[5], (f32[2], s32[3])) get-tuple-element(p), index=1\n"
                           " c = (f32[2], s32[3]) get-tuple-element(b), index=1\n y = s32[3] get-tuple-element(c), index=1\n"
                           " z = f32[2] get-tuple-element(c), index=0\n s = s32[3] subtract(x, y)\n n = f32[2] negate(z)\n"
                           " t = (f32[2], s32[3]) tuple(n, s)\n k = s32[5] get-tuple-element(b), index=0\n"
                           " ROOT r = ((f32[2], s32[3]), s32[5]) tuple(t, k)\n"));
}

// Arrays at every address that suits their elements; what the kernel does there is the same to the bit.
TEST(KernelScenarios, S10_ParametersAndResultsAtAnyAddress) {
  const std::string text = entry(" x = f32[1000] parameter(0)\n y = f32[1000] parameter(1)\n m = f32[1000] multiply(x, y)\n"
                                 " ROOT s = f32[1000] subtract(m, y)\n");
  auto compiled = compile(text, How::Regions);
  ASSERT_TRUE(compiled) << compiled.error().message();
  const auto executor = compiler::make_executor(*std::move(compiled));
  ASSERT_TRUE(executor);
  constexpr std::size_t kBytes = 4000;
  alignas(64) static std::byte room[3][kBytes + 64];
  std::vector<std::byte> first;
  for (std::size_t shift = 0; shift < 64; shift += 4) {
    std::byte* at[3];
    for (std::size_t k = 0; k < 3; ++k) at[k] = room[k] + (shift * (k + 1)) % 64;
    for (std::size_t e = 0; e < 1000; ++e) {
      const float x = 0.3F * static_cast<float>(e), y = 7 - 0.01F * static_cast<float>(e);
      std::memcpy(at[0] + 4 * e, &x, 4);
      std::memcpy(at[1] + 4 * e, &y, 4);
    }
    const std::span<std::byte> in[] = {{at[0], kBytes}, {at[1], kBytes}}, out[] = {{at[2], kBytes}};
    const auto done = (*executor)->execute(in, out);
    ASSERT_TRUE(done) << done.error().message();
    if (first.empty()) first.assign(at[2], at[2] + kBytes);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), at[2])) << shift;
  }
}

TEST(KernelScenarios, S11_TwoParametersInOneMemory) {
  for (const How how : {How::Regions, How::Steps, How::Watched}) {
    auto compiled = compile(entry(" x = s32[1000] parameter(0)\n y = s32[1000] parameter(1)\n r = s32[1000] reverse(y), dimensions={0}\n"
                                  " ROOT s = s32[1000] add(x, r)\n"), how);
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto executor = compiler::make_executor(*std::move(compiled));
    ASSERT_TRUE(executor) << executor.error().message();
    std::vector<std::int32_t> in(1000), out(1000);
    for (int k = 0; k < 1000; ++k) in[static_cast<std::size_t>(k)] = k * k;
    const std::span<std::byte> x = std::as_writable_bytes(std::span(in));
    const std::span<std::byte> arguments[] = {x, x}, results[] = {std::as_writable_bytes(std::span(out))};
    const auto done = (*executor)->execute(arguments, results);
    ASSERT_TRUE(done) << done.error().message();
    for (int k = 0; k < 1000; ++k) EXPECT_EQ(out[static_cast<std::size_t>(k)], k * k + (999 - k) * (999 - k));
  }
}

// A call for blocks [0, n) is n calls of one; one for none does nothing.
TEST(KernelScenarios, S12andS13_RangesOfBlocks) {
  auto compiled = compile(entry(" x = f32[300000] parameter(0)\n ROOT n = f32[300000] negate(x)\n"), How::Steps);
  ASSERT_TRUE(compiled) << compiled.error().message();
  const auto& call = std::get<runtime::Call>(compiled->program.steps.at(0).of);
  ASSERT_GT(call.blocks, 1);
  std::vector<float> in(300000, 2), whole(300000, 1), parts(300000, 1);
  void* const to_whole[] = {in.data(), whole.data()};
  void* const to_parts[] = {in.data(), parts.data()};
  for (std::int64_t b = 0; b <= call.blocks; ++b) call.function(to_whole, b, b, nullptr);
  EXPECT_TRUE(std::ranges::all_of(whole, [](float x) { return x == 1; }));
  call.function(to_whole, 0, call.blocks, nullptr);
  for (std::int64_t b = call.blocks; b-- > 0;) call.function(to_parts, b, b + 1, nullptr);
  EXPECT_EQ(whole, parts);
  EXPECT_TRUE(std::ranges::all_of(whole, [](float x) { return x == -2; }));
}

}  // namespace
}  // namespace hloom
