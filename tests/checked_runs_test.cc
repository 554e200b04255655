// Invariant 4 of the memory pipeline: each step writes its results and nothing else. All conformance cases and all
// programs run under the watch of checked runs and of kernels that look at each index, and give what they give without.

#include <gtest/gtest.h>

#include <algorithm>

#include "arrays/compare.h"
#include "arrays/conformance.h"
#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "compiler/checked_run.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "library/lapack_library.h"
#include "program_folders.h"

namespace hloom {
namespace {

const std::string kCases = HLOOM_SOURCE_DIR "/tests/conformance";

using ByDevice = std::vector<std::vector<hlo::Literal>>;

// Watched step by step, or in regions whose kernels look at their indices.
Expected<ByDevice> run(std::string_view text, const compiler::ReadOptions& read, const ByDevice& inputs, bool watched) {
  auto module = compiler::read_program(text, read);
  if (!module) return module.error();
  compiler::Options options;
  options.threads = 2;
  options.check_bounds = true;
  options.check_memory = watched;
  auto compiled = compiler::compile(*std::move(module), options);
  if (!compiled) return compiled.error();
  const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled->module),
                           results = compiler::result_leaves(*compiled->module);
  const auto executor = compiler::make_executor(*std::move(compiled));
  if (!executor) return executor.error();
  const runtime::Devices devices(**executor, 2 * static_cast<int>(inputs.size()));
  return compiler::execute_literals(devices, parameters, results, inputs);
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, KeepsToItsMemory) {
  const auto cases = arrays::read_conformance(kCases, GetParam());
  ASSERT_TRUE(cases) << cases.error().message();
  for (const arrays::ConformanceCase& test : *cases)
    for (const bool watched : {true, false}) {
      const auto values = run(test.text, {.file_name = test.name}, {test.arguments}, watched);
      ASSERT_TRUE(values) << test.name << ": " << values.error().message() << "\n" << test.text;
      EXPECT_EQ(arrays::compare_results((*values)[0], test.expected, test.tolerances), std::nullopt) << test.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Checked, Conformance, testing::ValuesIn(*arrays::conformance_opcodes(kCases)),
                         [](const auto& p) { return test_name(p.param); });

// A hloom that was built without LAPACK refuses its targets by name.
bool lacks_lapack(const arrays::CorpusFolder& folder) {
  return !library::want_lapack() && std::any_of(folder.custom_calls.begin(), folder.custom_calls.end(),
                                                [](const std::string& target) { return target.starts_with("lapack_"); });
}

class Program : public testing::TestWithParam<std::string> {};

TEST_P(Program, KeepsToItsMemory) {
  const std::string path = program_folder(GetParam());
  const auto folder = arrays::read_corpus_folder(path);
  ASSERT_TRUE(folder) << folder.error().message();
  const auto bytes = arrays::read_file(folder->program_path);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  ByDevice inputs;
  for (const auto& of_device : folder->inputs) inputs.push_back(leaves_of(of_device));
  const auto values = run(text,
                          {.file_name = folder->program_path,
                           .replicas = folder->num_replicas,
                           .partitions = folder->num_partitions},
                          inputs, true);
  if (!values && lacks_lapack(*folder)) GTEST_SKIP() << values.error().message();
  ASSERT_TRUE(values) << values.error().message();
  for (std::size_t k = 0; k < inputs.size(); ++k)
    EXPECT_EQ(arrays::compare_results((*values)[k], folder->expected[k], folder->tolerances), std::nullopt)
        << "device " << k;
}

INSTANTIATE_TEST_SUITE_P(Checked, Program, testing::ValuesIn(program_names()),
                         [](const auto& p) { return test_name(p.param); });

}  // namespace
}  // namespace hloom
