// Every case of tests/conformance holds with the tolerance that it has there.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "arrays/conformance.h"
#include "interp/interpret.h"
#include "text/parse.h"

namespace hloom::interp {
namespace {

std::string folder() {
  const std::string own = HLOOM_SOURCE_DIR "/tests/conformance";
  return std::filesystem::exists(own) ? own : HLOOM_SOURCE_DIR "/../shared/conformance";
}

// What is wrong with the case, or nothing.
std::string problem_of(const arrays::ConformanceCase& c) {
  const auto module = text::parse_module(c.text, {.file_name = c.name});
  if (!module) return module.error().message();
  const auto result = interpret(**module, c.arguments);
  if (!result) return result.error().message();
  const std::vector<hlo::Literal> got{*result};
  return arrays::compare_results(got, c.expected, c.tolerances).value_or("");
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, Holds) {
  const auto cases = arrays::read_conformance(folder(), GetParam());
  ASSERT_TRUE(cases) << cases.error().message();
  for (const arrays::ConformanceCase& c : *cases) EXPECT_EQ(problem_of(c), "") << c.opcode << " " << c.name;
}

std::vector<std::string> opcodes() {
  auto names = arrays::conformance_opcodes(folder());
  return names ? *names : std::vector<std::string>();
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Opcode, Conformance, testing::ValuesIn(opcodes()), test_name);

TEST(ConformanceFolder, HasAllCases) {
  std::size_t count = 0;
  for (const std::string& opcode : opcodes()) {
    const auto cases = arrays::read_conformance(folder(), opcode);
    ASSERT_TRUE(cases) << cases.error().message();
    count += cases->size();
  }
  EXPECT_EQ(count, 1338u);
}

}  // namespace
}  // namespace hloom::interp
