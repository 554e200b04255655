// Scenarios of reduces and of kernels that keep a row near, by the number in their list. Sums of whole numbers are the
// interpreter's to the bit; softmax and norms are held to what double precision says of the same numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "arrays/compare.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "interp/interpret.h"
#include "run_compiled.h"
#include "whole_numbers.h"

namespace hloom {
namespace {

using Values = std::vector<hlo::Literal>;
using Numbers = std::vector<float>;

const std::string kReducers =
    "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    "mul { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] multiply(a, b) }\n"
    "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] maximum(a, b) }\n"
    "min { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] minimum(a, b) }\n"
    "custom { a = f32[] parameter(0)\n b = f32[] parameter(1)\n n = f32[] negate(b)\n ROOT s = f32[] maximum(a, n) }\n";
const std::string kScalars = " zero = f32[] constant(0)\n one = f32[] constant(1)\n low = f32[] constant(-inf)\n high = f32[] constant(inf)\n";

std::string program(const std::string& body) { return "HloModule m\n" + kReducers + "ENTRY e {\n" + kScalars + body + "}\n"; }

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << "\n" << text;
  return module ? *std::move(module) : nullptr;
}

// Whole numbers from -3 to 3, no two parameters alike.
Values small_arguments(const hlo::Module& module) {
  Values values;
  std::int64_t seed = 0;
  for (const Shape& shape : compiler::parameter_leaves(module)) {
    hlo::Literal l(shape);
    const bool no_sign = shape.dtype() == DType::Pred;
    for (std::int64_t n = 0; n < l.num_elements(); ++n) {
      const std::int64_t x = (n * 37 + n / 7 * 11 + seed) % 7;
      put(l, n, static_cast<double>(no_sign ? x % 2 : x - 3));
    }
    ++seed;
    values.push_back(std::move(l));
  }
  return values;
}

void expect_interpreted(const std::string& text, const Values& given = {}) {
  auto module = parse(text);
  if (module == nullptr) return;
  const Values arguments = given.empty() ? small_arguments(*module) : given;
  const auto whole = interp::interpret(*module, compiler::arguments_of(*module, arguments));
  ASSERT_TRUE(whole) << whole.error().message();
  Values want;
  for (const hlo::Literal* leaf : hlo::leaves(*whole)) want.push_back(*leaf);
  const Values got = run_compiled(std::move(module), arguments, 2);
  EXPECT_EQ(arrays::compare_results(got, want, std::vector{arrays::Tolerance::exact()}), std::nullopt) << text;
}

// Each instruction that is named so is a result.
std::string with_results(const std::string& body, const std::vector<std::pair<std::string, std::string>>& results) {
  std::string shapes, names;
  for (const auto& [shape, name] : results) {
    shapes += (shapes.empty() ? "" : ", ") + shape;
    names += (names.empty() ? "" : ", ") + name;
  }
  return program(body + " ROOT results = (" + shapes + ") tuple(" + names + ")\n");
}

// --- Programs on f32 arrays ------------------------------------------------------------------------------------------

std::vector<Numbers> run(const std::string& text, std::vector<Numbers> inputs, const std::vector<std::size_t>& sizes, int threads = 2) {
  const auto program = Executable::compile(text, {.threads = threads});
  EXPECT_TRUE(program) << program.error().message() << "\n" << text;
  std::vector<Numbers> outputs;
  std::vector<std::span<std::byte>> in, out;
  for (Numbers& x : inputs) in.push_back(std::as_writable_bytes(std::span(x)));
  for (const std::size_t n : sizes) outputs.emplace_back(n);
  for (Numbers& y : outputs) out.push_back(std::as_writable_bytes(std::span(y)));
  if (!program) return outputs;
  const auto done = program->run_into(in, out);
  EXPECT_TRUE(done) << done.error().message();
  return outputs;
}

Numbers normal(std::size_t count, float mean, float deviation) {
  Numbers x(count);
  std::mt19937 random(11);
  for (float& v : x) v = std::normal_distribution<float>(mean, deviation)(random);
  return x;
}

constexpr std::size_t kRows = 8, kColumns = 100;

const std::string kSoftmax =
    " m = f32[8] reduce(x, low), dimensions={1}, to_apply=max\n mb = f32[8,100] broadcast(m), dimensions={0}\n"
    " d = f32[8,100] subtract(x, mb)\n e = f32[8,100] exponential(d)\n s = f32[8] reduce(e, zero), dimensions={1}, to_apply=add\n";

std::string softmax(const std::string& before, bool log) {
  return program(before + kSoftmax +
                 (log ? " l = f32[8] log(s)\n lb = f32[8,100] broadcast(l), dimensions={0}\n ROOT y = f32[8,100] subtract(d, lb)\n"
                      : " sb = f32[8,100] broadcast(s), dimensions={0}\n ROOT y = f32[8,100] divide(e, sb)\n"));
}
const std::string kPlain = " x = f32[8,100] parameter(0)\n";

std::vector<double> softmax_of(const Numbers& x, bool log) {
  std::vector<double> y(x.begin(), x.end());
  for (std::size_t r = 0; r < x.size(); r += kColumns) {
    const double most = *std::max_element(y.begin() + static_cast<std::ptrdiff_t>(r), y.begin() + static_cast<std::ptrdiff_t>(r + kColumns));
    double sum = 0;
    for (std::size_t c = r; c < r + kColumns; ++c) sum += std::exp(y[c] - most);
    for (std::size_t c = r; c < r + kColumns; ++c) y[c] = log ? y[c] - most - std::log(sum) : std::exp(y[c] - most) / sum;
  }
  return y;
}

void expect_near(const Numbers& got, const std::vector<double>& want, double relative, double absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t n = 0; n < want.size(); ++n) {
    if (std::isnan(want[n])) {
      EXPECT_TRUE(std::isnan(got[n])) << n;
      continue;
    }
    EXPECT_NEAR(got[n], want[n], relative * std::abs(want[n]) + absolute) << n;
    if (::testing::Test::HasFailure()) return;
  }
}

// A layer norm, and its gradients by input, scale and shift, of `rows` rows of `columns`.
std::string layer_norm(std::size_t rows, std::size_t columns) {
  const std::string r = std::to_string(rows), c = std::to_string(columns), full = " = f32[" + r + "," + c + "] ", row = " = f32[" + r + "] ";
  const auto mean = [&](const std::string& name, const std::string& of) {
    return " " + name + ".s" + row + "reduce(" + of + ", zero), dimensions={1}, to_apply=add\n " + name + ".m" + row + "divide(" + name +
           ".s, n)\n " + name + full + "broadcast(" + name + ".m), dimensions={0}\n";
  };
  return program(
      " x" + full + "parameter(0)\n dy" + full + "parameter(1)\n g = f32[" + c + "] parameter(2)\n b = f32[" + c + "] parameter(3)\n count = f32[] constant(" +
      c + ")\n n" + row + "broadcast(count), dimensions={}\n eps = f32[] constant(1e-05)\n epsb" + full + "broadcast(eps), dimensions={}\n gb" + full +
      "broadcast(g), dimensions={1}\n bb" + full + "broadcast(b), dimensions={1}\n" + mean("mu", "x") + " d" + full + "subtract(x, mu)\n q" + full +
      "multiply(d, d)\n" + mean("var", "q") + " v" + full + "add(var, epsb)\n i" + full + "rsqrt(v)\n h" + full + "multiply(d, i)\n hg" + full +
      "multiply(h, gb)\n y" + full + "add(hg, bb)\n dh" + full + "multiply(dy, gb)\n" + mean("dm", "dh") + " hd" + full + "multiply(h, dh)\n" +
      mean("hm", "hd") + " hh" + full + "multiply(h, hm)\n u" + full + "subtract(dh, dm)\n w" + full + "subtract(u, hh)\n dx" + full +
      "multiply(w, i)\n hy" + full + "multiply(h, dy)\n dg = f32[" + c + "] reduce(hy, zero), dimensions={0}, to_apply=add\n db = f32[" + c +
      "] reduce(dy, zero), dimensions={0}, to_apply=add\n ROOT t = (f32[" + r + "," + c + "], f32[" + r + "," + c + "], f32[" + c + "], f32[" + c +
      "]) tuple(y, dx, dg, db)\n");
}

std::vector<Numbers> run_layer_norm(std::size_t rows, const Numbers& x, const Numbers& dy, int threads = 2) {
  const std::size_t columns = x.size() / rows;
  return run(layer_norm(rows, columns), {x, dy, normal(columns, 1, 0.1F), normal(columns, 0, 1)}, {x.size(), x.size(), columns, columns},
             threads);
}

// --- The scenarios ---------------------------------------------------------------------------------------------------

TEST(ReductionScenarios, S01_EveryDimensionInEveryLayout) {
  for (const std::vector<std::int64_t>& n : std::vector<std::vector<std::int64_t>>{{3, 5, 9}, {2, 17, 66}, {40, 3, 2}})
    for (const std::string layout : {"2,1,0", "2,0,1", "1,2,0", "1,0,2", "0,1,2", "0,2,1"}) {
      const std::string dims = std::to_string(n[0]) + "," + std::to_string(n[1]) + "," + std::to_string(n[2]);
      std::string body = " x = f32[" + dims + "]{" + layout + "} parameter(0)\n";
      std::vector<std::pair<std::string, std::string>> results;
      for (unsigned subset = 0; subset < 8; ++subset) {
        std::string along, kept;
        for (unsigned d = 0; d < 3; ++d) {
          std::string& to = (subset >> d & 1U) != 0 ? along : kept;
          to += (to.empty() ? "" : ",") + ((subset >> d & 1U) != 0 ? std::to_string(d) : std::to_string(n[d]));
        }
        results.emplace_back("f32[" + kept + "]", "r" + std::to_string(subset));
        body += " " + results.back().second + " = " + results.back().first + " reduce(x, one), dimensions={" + along + "}, to_apply=add\n";
      }
      expect_interpreted(with_results(body, results));
    }
}

TEST(ReductionScenarios, S02_ExtentsAroundVectorsAndAMillion) {
  for (const int n : {1, 2, 7, 31, 32, 33, 1000000}) {
    const std::string e = std::to_string(n);
    expect_interpreted(with_results(" x = f32[3," + e + "] parameter(0)\n y = f32[" + e + ",3] parameter(1)\n"
                                    " a = f32[3] reduce(x, zero), dimensions={1}, to_apply=add\n b = f32[" + e +
                                    "] reduce(x, zero), dimensions={0}, to_apply=add\n c = f32[3] reduce(y, zero), dimensions={0}, to_apply=add\n d = f32[" +
                                    e + "] reduce(y, zero), dimensions={1}, to_apply=add\n f = f32[] reduce(y, low), dimensions={0,1}, to_apply=max\n",
                                    {{"f32[3]", "a"}, {"f32[" + e + "]", "b"}, {"f32[3]", "c"}, {"f32[" + e + "]", "d"}, {"f32[]", "f"}}));
  }
}

TEST(ReductionScenarios, S03_EveryReducerAndOneOfTheUsers) {
  for (const char* const d : {"0", "1"}) {
    const std::string along = std::string("), dimensions={") + d + "}, to_apply=", kept = d[0] == '0' ? "f32[70]" : "f32[5]";
    expect_interpreted(with_results(" x = f32[5,70] parameter(0)\n s = f32[5,70] sign(x)\n a = " + kept + " reduce(x, zero" + along + "add\n b = " +
                                        kept + " reduce(s, one" + along + "mul\n c = " + kept + " reduce(x, high" + along + "min\n f = " + kept +
                                        " reduce(x, low" + along + "max\n g = " + kept + " reduce(x, low" + along + "custom\n",
                                    {{kept, "a"}, {kept, "b"}, {kept, "c"}, {kept, "f"}, {kept, "g"}}));
    for (const std::string type : {"s32", "pred"}) {
      const std::string x = type + "[5,70]", r = type + kept.substr(3), z = type == "pred" ? "false" : "0", all = type == "pred" ? "true" : "-1";
      std::string reducers, body = " x = " + x + " parameter(0)\n n = " + type + "[] constant(" + z + ")\n y = " + type + "[] constant(" + all + ")\n";
      for (const std::string op : {"and", "or", "xor"}) {
        reducers += "r." + op + " { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT s = " + type + "[] " + op + "(a, b) }\n";
        body += " " + op + ".r = " + r + " reduce(x, " + (op == "and" ? "y" : "n") + along + "r." + op + "\n";
      }
      expect_interpreted("HloModule m\n" + reducers + "ENTRY e {\n" + body + " ROOT t = (" + r + ", " + r + ", " + r + ") tuple(and.r, or.r, xor.r)\n}\n");
    }
  }
}

TEST(ReductionScenarios, S03_PositionsOfTheGreatestAndLeastWithTiesAndNan) {
  for (const std::string direction : {"GT", "LT"})
    for (const int n : {3, 64, 333}) {
      const std::string size = std::to_string(n), x = "f32[4," + size + "]", i = "s32[4," + size + "]", p = "pred[] ";
      const std::string text =
          "HloModule m\nbest { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n g = " + p +
          "compare(a, b), direction=" + direction + "\n u = " + p + "compare(a, a), direction=NE\n w = " + p + "or(g, u)\n q = " + p +
          "compare(a, b), direction=EQ\n l = " + p + "compare(i, j), direction=LT\n t = " + p + "and(q, l)\n k = " + p +
          "or(w, t)\n v = f32[] select(w, a, b)\n o = s32[] select(k, i, j)\n ROOT r = (f32[], s32[]) tuple(v, o) }\nENTRY e {\n x = " + x +
          " parameter(0)\n i = " + i + " iota(), iota_dimension=1\n z = f32[] constant(" + (direction == "GT" ? "-inf" : "inf") +
          ")\n n = s32[] constant(0)\n ROOT r = (f32[4], s32[4]) reduce(x, i, z, n), dimensions={1}, to_apply=best\n}\n";
      Values arguments = small_arguments(*parse(text));
      put(arguments[0], n + n / 2, std::numeric_limits<double>::quiet_NaN());
      put(arguments[0], 2 * n, std::numeric_limits<double>::quiet_NaN());
      put(arguments[0], 3 * n - 1, std::numeric_limits<double>::quiet_NaN());
      expect_interpreted(text, arguments);
    }
}

// 300 times 1 + 1/128: bf16 alone would stay at 256.
TEST(ReductionScenarios, S04_NarrowNumbersAreSummedWideAndRoundedOnce) {
  for (const char* const dims : {"2,300", "300,2"}) {
    const std::string d = dims[0] == '2' ? "1" : "0";
    auto module = parse(
        "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e {\n x = bf16[" +
        std::string(dims) + "] parameter(0)\n w = f32[" + dims + "] convert(x)\n z = f32[] constant(0)\n s = f32[2] reduce(w, z), dimensions={" + d +
        "}, to_apply=add\n ROOT y = bf16[2] convert(s)\n}\n");
    hlo::Literal x(compiler::parameter_leaves(*module)[0]);
    for (std::int64_t n = 0; n < 600; ++n) put(x, n, 1 + 1.0 / 128);
    const Values got = run_compiled(std::move(module), {x}, 2);
    ASSERT_EQ(got.size(), 1u);
    for (std::int64_t n = 0; n < 2; ++n) EXPECT_EQ(element_as_double(got[0], n), 302);  // 302.34
  }
}

TEST(ReductionScenarios, S05_AnInitialValueCountsOnce) {
  expect_interpreted(with_results(" x = f32[40,70] parameter(0)\n w = f32[] parameter(1)\n five = f32[] constant(5)\n"
                                  " a = f32[40] reduce(x, five), dimensions={1}, to_apply=add\n b = f32[70] reduce(x, five), dimensions={0}, to_apply=add\n"
                                  " c = f32[] reduce(x, five), dimensions={0,1}, to_apply=add\n f = f32[40] reduce(x, w), dimensions={1}, to_apply=max\n",
                                  {{"f32[40]", "a"}, {"f32[70]", "b"}, {"f32[]", "c"}, {"f32[40]", "f"}}));
  expect_interpreted(program(" x = f32[300000] parameter(0)\n five = f32[] constant(5)\n ROOT s = f32[] reduce(x, five), dimensions={0}, to_apply=add\n"));
}

TEST(ReductionScenarios, S06_ADifferenceBeforeAndABroadcastBehind) {
  expect_interpreted(with_results(
      " x = f32[30,101] parameter(0)\n a = f32[30,100] slice(x), slice={[0:30],[1:101]}\n b = f32[30,100] slice(x), slice={[0:30],[0:100]}\n"
      " d = f32[30,100] subtract(a, b)\n s = f32[30] reduce(d, zero), dimensions={1}, to_apply=add\n sb = f32[30,100] broadcast(s), dimensions={0}\n"
      " y = f32[30,100] add(d, sb)\n c = f32[100] reduce(d, zero), dimensions={0}, to_apply=add\n cb = f32[30,100] broadcast(c), dimensions={1}\n"
      " w = f32[30,100] subtract(d, cb)\n",
      {{"f32[30,100]", "y"}, {"f32[30,100]", "w"}}));
}

TEST(ReductionScenarios, S07_SoftmaxOfRowsOfAllKinds) {
  const float infinite = std::numeric_limits<float>::infinity();
  Numbers x = normal(kRows * kColumns, 0, 4);
  std::fill_n(x.begin() + kColumns, kColumns, 7.5F);       // all equal
  std::fill_n(x.begin() + 2 * kColumns, kColumns / 2, -infinite);
  std::fill_n(x.begin() + 3 * kColumns, kColumns, -infinite);  // nothing is left
  std::fill_n(x.begin() + 4 * kColumns, kColumns, -3e38F);
  x[5 * kColumns + 3] = 3e38F;
  expect_near(run(softmax(kPlain, false), {x}, {x.size()})[0], softmax_of(x, false), 3e-6, 1e-37);
}

TEST(ReductionScenarios, S07_SoftmaxUnderAMask) {
  const std::string masked =
      " p = f32[8,100] parameter(0)\n k = f32[100] parameter(1)\n kb = f32[8,100] broadcast(k), dimensions={1}\n zeros = f32[8,100] broadcast(zero), "
      "dimensions={}\n hidden = f32[] constant(-1e9)\n lows = f32[8,100] broadcast(hidden), dimensions={}\n on = pred[8,100] compare(kb, zeros), "
      "direction=GT\n x = f32[8,100] select(on, p, lows)\n";
  const Numbers x = normal(kRows * kColumns, 0, 2), mask = normal(kColumns, 0, 1);
  Numbers seen = x;
  for (std::size_t n = 0; n < x.size(); ++n)
    if (!(mask[n % kColumns] > 0)) seen[n] = -1e9F;
  expect_near(run(softmax(masked, false), {x, mask}, {x.size()})[0], softmax_of(seen, false), 3e-6, 0);
}

TEST(ReductionScenarios, S07_SoftmaxOfBf16IsRoundedOnce) {
  auto module = parse(program(" b = bf16[8,100] parameter(0)\n x = f32[8,100] convert(b)\n" + kSoftmax +
                              " sb = f32[8,100] broadcast(s), dimensions={0}\n y = f32[8,100] divide(e, sb)\n ROOT r = bf16[8,100] convert(y)\n"));
  hlo::Literal b(compiler::parameter_leaves(*module)[0]);
  Numbers x = normal(kRows * kColumns, 0, 2);
  for (std::size_t n = 0; n < x.size(); ++n) {
    put(b, static_cast<std::int64_t>(n), x[n]);
    x[n] = static_cast<float>(element_as_double(b, static_cast<std::int64_t>(n)));
  }
  const Values got = run_compiled(std::move(module), {b}, 2);
  ASSERT_EQ(got.size(), 1u);
  const std::vector<double> want = softmax_of(x, false);
  for (std::size_t n = 0; n < want.size(); ++n)
    EXPECT_NEAR(element_as_double(got[0], static_cast<std::int64_t>(n)), want[n], want[n] * 0.00393) << n;
}

// What is left of equal numbers is the rounding of their mean, against the root of epsilon.
TEST(ReductionScenarios, S08_ANormOfEqualNumbersIsItsShift) {
  for (const float value : {0.0F, 3.0F, 0.1F, -1e4F}) {
    const Numbers x(4 * 256, value), dy = normal(x.size(), 0, 1), shift = normal(256, 0, 1);
    const auto results = run_layer_norm(4, x, dy);
    const double slack = std::abs(value) * 2.4e-7 / std::sqrt(1e-5) * 2;
    for (std::size_t n = 0; n < x.size(); ++n) ASSERT_NEAR(results[0][n], shift[n % 256], slack) << value;
    for (const Numbers& r : results)
      for (const float v : r) ASSERT_TRUE(std::isfinite(v)) << value;
  }
}

// Taken from the mean first, numbers keep what a sum of squares would lose.
TEST(ReductionScenarios, S08_ANormOfAHugeMeanKeepsItsDigits) {
  Numbers x = normal(4 * 256, 0, 8);
  for (float& v : x) v = 1e6F + std::round(v * 16) / 16;
  const Numbers dy = normal(x.size(), 0, 1), scale = normal(256, 1, 0.1F), shift = normal(256, 0, 1);
  const Numbers y = run_layer_norm(4, x, dy)[0];
  for (std::size_t r = 0; r < 4; ++r) {
    double mean = 0, square = 0;
    for (std::size_t c = 0; c < 256; ++c) mean += x[r * 256 + c] / 256.0;
    for (std::size_t c = 0; c < 256; ++c) square += (x[r * 256 + c] - mean) * (x[r * 256 + c] - mean) / 256;
    for (std::size_t c = 0; c < 256; ++c)  // the mean is right to its own last digits, 1/16
      ASSERT_NEAR(y[r * 256 + c], (x[r * 256 + c] - mean) / std::sqrt(square + 1e-5) * scale[c] + shift[c], 0.0625 / 8 * 3);
  }
}

TEST(ReductionScenarios, S09_LogSoftmaxAndScoresScaledAndMasked) {
  const Numbers x = normal(kRows * kColumns, 0, 5);
  expect_near(run(softmax(kPlain, true), {x}, {x.size()})[0], softmax_of(x, true), 1e-6, 4e-6);
  const std::string scores =
      " p = f32[8,100] parameter(0)\n k = f32[8,100] parameter(1)\n f = f32[] constant(0.125)\n fb = f32[8,100] broadcast(f), dimensions={}\n"
      " scaled = f32[8,100] multiply(p, fb)\n x = f32[8,100] add(scaled, k)\n";
  Numbers mask(x.size()), seen(x.size());
  for (std::size_t n = 0; n < x.size(); ++n) {
    mask[n] = n % kColumns > 12 * (n / kColumns + 1) ? -std::numeric_limits<float>::infinity() : 0.0F;
    seen[n] = x[n] * 0.125F + mask[n];
  }
  expect_near(run(softmax(scores, false), {x, mask}, {x.size()})[0], softmax_of(seen, false), 3e-6, 0);
}

TEST(ReductionScenarios, S10_AnyNumberOfThreadsLeavesTheSameBits) {
  for (const std::size_t rows : {std::size_t{500}, std::size_t{18432}}) {
    const Numbers x = normal(rows * 64, 0.3F, 2), dy = normal(rows * 64, 0, 1);
    const auto one = run_layer_norm(rows, x, dy, 1);
    for (const int threads : {2, 3, 4}) {
      const auto many = run_layer_norm(rows, x, dy, threads);
      for (std::size_t n = 0; n < one.size(); ++n)
        EXPECT_EQ(std::memcmp(one[n].data(), many[n].data(), one[n].size() * sizeof(float)), 0) << rows << " rows, result " << n;
    }
  }
}

// sum_j m_j (x_j - x_i) / (|x_j - x_i|² + 1)^(3/2): 64 MiB of pairs, were they made.
TEST(ReductionScenarios, S11_ForcesOfManyBodiesTakeNoArrayOfPairs) {
  const std::string pairs = "f32[4096,4096,3]", pair = "f32[4096,4096]";
  const auto forces = Executable::compile(program(
      " x = f32[4096,3] parameter(0)\n m = f32[4096] parameter(1)\n xi = " + pairs + " broadcast(x), dimensions={0,2}\n xj = " + pairs +
      " broadcast(x), dimensions={1,2}\n d = " + pairs + " subtract(xj, xi)\n q = " + pairs + " multiply(d, d)\n r = " + pair +
      " reduce(q, one), dimensions={2}, to_apply=add\n i = " + pair + " rsqrt(r)\n i2 = " + pair + " multiply(i, i)\n i3 = " + pair +
      " multiply(i2, i)\n mj = " + pair + " broadcast(m), dimensions={1}\n w = " + pair + " multiply(i3, mj)\n wb = " + pairs +
      " broadcast(w), dimensions={0,1}\n f = " + pairs + " multiply(d, wb)\n ROOT a = f32[4096,3] reduce(f, zero), dimensions={1}, to_apply=add\n"));
  ASSERT_TRUE(forces) << forces.error().message();
  EXPECT_LT(forces->memory().temp_bytes, 8 * (4096 + 4096) * 4);
  Numbers x = normal(4096 * 3, 0, 1), m(4096, 0.5F), a(x.size());
  const std::vector<std::span<std::byte>> in = {std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(m))},
                                          out = {std::as_writable_bytes(std::span(a))};
  ASSERT_TRUE(forces->run_into(in, out));
  for (const std::size_t i : {0, 7, 4095}) {
    double want[3] = {};
    for (std::size_t j = 0; j < 4096; ++j) {
      double d[3], r = 1;
      for (std::size_t k = 0; k < 3; ++k) {
        d[k] = static_cast<double>(x[3 * j + k]) - static_cast<double>(x[3 * i + k]);
        r += d[k] * d[k];
      }
      for (std::size_t k = 0; k < 3; ++k) want[k] += 0.5 * d[k] / (r * std::sqrt(r));
    }
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(a[3 * i + k], want[k], 2e-3) << i;
  }
}

TEST(ReductionScenarios, S13_ASumForTwoReaders) {
  for (const std::string d : {"0", "1"}) {
    const std::string kept = d == "0" ? "f32[70]" : "f32[40]", back = d == "0" ? "1" : "0";
    expect_interpreted(with_results(" x = f32[40,70] parameter(0)\n q = f32[40,70] multiply(x, x)\n s = " + kept + " reduce(q, zero), dimensions={" + d +
                                        "}, to_apply=add\n n = " + kept + " negate(s)\n b = f32[40,70] broadcast(s), dimensions={" + back +
                                        "}\n y = f32[40,70] subtract(x, b)\n t = f32[] reduce(s, zero), dimensions={0}, to_apply=add\n",
                                    {{kept, "n"}, {"f32[40,70]", "y"}, {"f32[]", "t"}, {kept, "s"}}));
  }
}

TEST(ReductionScenarios, S14_NothingToReduceIsTheInitialValue) {
  expect_interpreted(with_results(" x = f32[3,0,4] parameter(0)\n y = f32[0] parameter(1)\n w = f32[5,7] parameter(2)\n five = f32[] constant(5)\n"
                                  " a = f32[3,4] reduce(x, five), dimensions={1}, to_apply=add\n b = f32[] reduce(y, low), dimensions={0}, to_apply=max\n"
                                  " c = f32[5,7] reduce(w, five), dimensions={}, to_apply=add\n d = f32[0,4] reduce(x, five), dimensions={0}, to_apply=add\n"
                                  " f = f32[] reduce(x, five), dimensions={0,1,2}, to_apply=add\n",
                                  {{"f32[3,4]", "a"}, {"f32[]", "b"}, {"f32[5,7]", "c"}, {"f32[0,4]", "d"}, {"f32[]", "f"}}));
}

// Types without arithmetic too, and where only an outer dimension is empty.
TEST(ReductionScenarios, S14_NothingOfAnyTypeToReduce) {
  for (const std::string type : {"pred", "s8", "u32", "f16", "f64"}) {
    const std::string op = type == "pred" ? "and" : "maximum";
    const auto module = compiler::read_program("HloModule m\nc { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT r = " + type + "[] " + op +
                                               "(a, b) }\nENTRY e { z = " + type + "[] parameter(0)\n i = " + type + "[] constant(1)\n x = " + type +
                                               "[1,0,1,8] broadcast(z), dimensions={}\n ROOT r = " + type + "[] reduce(x, i), dimensions={0,1,2,3}, to_apply=c }");
    ASSERT_TRUE(module) << module.error().message();
    hlo::Literal zero(Shape::scalar((*module)->entry()->parameter(0)->shape().dtype()));
    const auto want = interp::interpret(**module, {&zero, 1});
    ASSERT_TRUE(want);
    const auto got = run_compiled((*module)->clone(), {zero}, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(got[0].bytes(), want->bytes())) << type;
  }
}

// One after the other in f32, ones would stop at 2^24.
TEST(ReductionScenarios, S15_AHundredMillionOnesAreAHundredMillion) {
  const Numbers all = run(program(" x = f32[] parameter(0)\n b = f32[100000000] broadcast(x), dimensions={}\n"
                                  " ROOT s = f32[] reduce(b, zero), dimensions={0}, to_apply=add\n"), {{1}}, {1})[0];
  EXPECT_EQ(all[0], 1e8F);
  const Numbers columns = run(program(" x = f32[20] parameter(0)\n b = f32[5000000,20] broadcast(x), dimensions={1}\n"
                                      " ROOT s = f32[20] reduce(b, zero), dimensions={0}, to_apply=add\n"), {Numbers(20, 1)}, {20})[0];
  for (const float v : columns) EXPECT_EQ(v, 5e6F);
  const Numbers tenths = run(program(" x = f32[] parameter(0)\n b = f32[100000000] broadcast(x), dimensions={}\n"
                                     " ROOT s = f32[] reduce(b, zero), dimensions={0}, to_apply=add\n"), {{0.1F}}, {1})[0];
  EXPECT_NEAR(tenths[0], 1e8 * static_cast<double>(0.1F), 100);  // 1e-5
}

}  // namespace
}  // namespace hloom
