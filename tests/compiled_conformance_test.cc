// Every conformance case compiles and gives its expected values: in regions and step by step, on one
// thread and on two, with the same values each time.

#include <gtest/gtest.h>

#include <algorithm>

#include "arrays/compare.h"
#include "arrays/conformance.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"

namespace hloom {
namespace {

const std::string kFolder = HLOOM_SOURCE_DIR "/tests/conformance";

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

void expect_case(const arrays::ConformanceCase& test) {
  const auto regions = run(test, true);
  EXPECT_TRUE(regions) << test.name << ": " << regions.error().message() << "\n" << test.text;
  if (!regions) return;
  EXPECT_EQ(arrays::compare_results(regions->one, test.expected, test.tolerances), std::nullopt) << test.name << "\n"
                                                                                                 << test.text;
  expect_same(regions->two, regions->one, test, "on two threads");
  const auto steps = run(test, false);
  EXPECT_TRUE(steps) << test.name << ": " << steps.error().message() << "\n" << test.text;
  if (!steps) return;
  expect_same(steps->one, regions->one, test, "step by step");
  expect_same(steps->two, regions->one, test, "step by step on two threads");
}

class Compiled : public testing::TestWithParam<std::string> {};

TEST_P(Compiled, GivesTheExpectedValues) {
  const auto cases = arrays::read_conformance(kFolder, GetParam());
  ASSERT_TRUE(cases) << cases.error().message();
  for (const arrays::ConformanceCase& test : *cases) expect_case(test);
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Compiled, testing::ValuesIn(*arrays::conformance_opcodes(kFolder)), name_of);

}  // namespace
}  // namespace hloom
