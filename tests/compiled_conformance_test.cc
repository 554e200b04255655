// Every conformance case that has a compiled form gives its expected values: in regions and step by step, on one
// thread and on two, with the same values each time.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "arrays/compare.h"
#include "arrays/conformance.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"

namespace hloom {
namespace {

const std::string kFolder = HLOOM_SOURCE_DIR "/tests/conformance";

// Opcodes whose cases all compile, whatever their element types.
const std::set<std::string_view> kCompiled = {
    // elementwise
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clamp", "compare",
    "complex", "convert", "copy", "cosh", "cosine", "count-leading-zeros", "divide", "erf", "exponential",
    "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum",
    "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision", "remainder", "round-nearest-afz",
    "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign",
    "sine", "sinh", "sqrt", "stochastic-convert", "subtract", "tan", "tanh", "xor",
    // data movement
    "bitcast", "bitcast-convert", "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "iota",
    "pad", "reshape", "reverse", "scatter", "slice", "transpose",
    // what expands
    "async-done", "async-start", "async-update", "batch-norm-grad", "batch-norm-inference", "batch-norm-training",
    "copy-done", "copy-start", "custom-call", "domain", "dynamic-reshape", "fusion", "get-dimension-size", "partition-id", "ragged-dot", "replica-id", "rng", "scaled-dot", "scan",
    "set-dimension-size",
    // sums, sorts, random bits
    "cholesky", "convolution", "dot", "fft", "reduce", "reduce-window", "rng-bit-generator", "rng-get-and-update-state",
    "sort", "triangular-solve",
    // collectives, here of one device
    "all-gather", "all-gather-start", "all-reduce", "all-reduce-start", "all-to-all", "collective-broadcast",
    "collective-permute", "collective-permute-start", "collective-reduce", "ragged-all-to-all", "reduce-scatter",
    // control
    "call", "conditional", "get-tuple-element", "parameter", "constant", "tuple", "while",
    "add-dependency", "after-all", "map", "mulhi", "opt-barrier"};

using Values = std::vector<hlo::Literal>;

/// What the program gives on one thread and on two.
struct Runs {
  Values one, two;
};

Expected<Runs> run(const arrays::ConformanceCase& test, bool regions) {
  auto module = compiler::read_program(test.text, {.file_name = test.name});
  if (!module) return module.error();
  compiler::Options options;
  options.regions = regions;
  options.threads = 1;
  options.verify_each = true;
  auto compiled = compiler::compile(std::move(*module), options);
  if (!compiled && compiled.error().code() == Code::Unimplemented && kCompiled.contains(test.opcode))
    return Error(Code::Internal, "is refused: " + compiled.error().message());
  if (!compiled) return compiled.error();
  const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled->module),
                           results = compiler::result_leaves(*compiled->module);
  const auto executor = runtime::Executor::create(std::move(compiled->program));
  if (!executor) return executor.error();
  static runtime::ThreadPool one(1), two(2);
  auto on_one = compiler::execute_literals(**executor, parameters, results, test.arguments, one);
  if (!on_one) return on_one.error();
  auto on_two = compiler::execute_literals(**executor, parameters, results, test.arguments, two);
  if (!on_two) return on_two.error();
  return Runs{std::move(*on_one), std::move(*on_two)};
}

void expect_same(const Values& got, const Values& want, const arrays::ConformanceCase& test, const char* how) {
  const arrays::Tolerance same = arrays::Tolerance::exact();
  EXPECT_EQ(arrays::compare_results(got, want, {&same, 1}), std::nullopt)
      << test.name << ": other values " << how << "\n"
      << test.text;
}

// False if the case has no compiled form.
bool expect_case(const arrays::ConformanceCase& test) {
  const auto regions = run(test, true);
  if (!regions && regions.error().code() == Code::Unimplemented) return false;
  EXPECT_TRUE(regions) << test.name << ": " << regions.error().message() << "\n" << test.text;
  if (!regions) return true;
  EXPECT_EQ(arrays::compare_results(regions->one, test.expected, test.tolerances), std::nullopt) << test.name << "\n"
                                                                                                 << test.text;
  expect_same(regions->two, regions->one, test, "on two threads");
  const auto steps = run(test, false);
  EXPECT_TRUE(steps) << test.name << ": " << steps.error().message() << "\n" << test.text;
  if (!steps) return true;
  expect_same(steps->one, regions->one, test, "step by step");
  expect_same(steps->two, regions->one, test, "step by step on two threads");
  return true;
}

class Compiled : public testing::TestWithParam<std::string> {};

TEST_P(Compiled, GivesTheExpectedValues) {
  const auto cases = arrays::read_conformance(kFolder, GetParam());
  ASSERT_TRUE(cases) << cases.error().message();
  std::vector<std::string> refused;
  for (const arrays::ConformanceCase& test : *cases)
    if (!expect_case(test)) refused.push_back(test.name);
  if (refused.empty()) return;
  std::cout << refused.size() << " of " << cases->size() << " cases have no compiled form:";
  for (const std::string& name : refused) std::cout << " " << name;
  std::cout << "\n";
  if (refused.size() == cases->size()) GTEST_SKIP() << "no case has a compiled form";
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Compiled, testing::ValuesIn(*arrays::conformance_opcodes(kFolder)), name_of);

}  // namespace
}  // namespace hloom
