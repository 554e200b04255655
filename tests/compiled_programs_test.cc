// Real programs give their expected values when compiled: in regions and step by step, on one thread and on two, with
// the same bits each time. Those of tests/programs always, the whole corpus where it is at hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "arrays/compare.h"
#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "library/lapack_library.h"
#include "program_folders.h"

namespace hloom {
namespace {

using ByDevice = std::vector<std::vector<hlo::Literal>>;

// Each device's results within the tolerances.
void expect_results(const ByDevice& got, const ByDevice& want, const std::vector<arrays::Tolerance>& tolerances,
                    const std::string& how) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    EXPECT_EQ(arrays::compare_results(got[k], want[k], tolerances), std::nullopt) << how << ", device " << k;
}

// A hloom that was built without LAPACK refuses its targets by name.
bool lacks_lapack(const arrays::CorpusFolder& folder) {
  return !library::want_lapack() && std::any_of(folder.custom_calls.begin(), folder.custom_calls.end(),
                                                [](const std::string& target) { return target.starts_with("lapack_"); });
}

void expect_program(const arrays::CorpusFolder& folder, const std::string& path) {
  const auto bytes = arrays::read_file(path);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  ByDevice inputs, first;
  for (const auto& of_device : folder.inputs) inputs.push_back(leaves_of(of_device));
  for (const bool regions : {true, false}) {
    auto module = compiler::read_program(
        text, {.file_name = path, .replicas = folder.num_replicas, .partitions = folder.num_partitions});
    ASSERT_TRUE(module) << module.error().message();
    compiler::Options options;
    options.regions = regions;
    options.threads = 2;
    auto compiled = compiler::compile(std::move(*module), options);
    if (!compiled && lacks_lapack(folder)) GTEST_SKIP() << compiled.error().message();
    ASSERT_TRUE(compiled) << compiled.error().message();
    const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled->module),
                             results = compiler::result_leaves(*compiled->module);
    const auto executor = runtime::Executor::create(std::move(compiled->program));
    ASSERT_TRUE(executor) << executor.error().message();
    for (const int threads : {1, 2 * static_cast<int>(inputs.size())}) {
      const runtime::Devices devices(**executor, threads);
      const auto values = compiler::execute_literals(devices, parameters, results, inputs);
      ASSERT_TRUE(values) << values.error().message();
      const std::string how = std::string(regions ? "in regions" : "without regions") + " on " +
                              std::to_string(threads) + " threads";
      expect_results(*values, folder.expected, folder.tolerances, how);
      if (first.empty()) first = *values;
      expect_results(*values, first, {arrays::Tolerance::exact()}, "other values " + how);
    }
  }
}

class Program : public testing::TestWithParam<std::string> {};

TEST_P(Program, GivesItsExpectedValues) {
  const std::string path = program_folder(GetParam());
  if (!arrays::is_corpus_folder(path)) GTEST_SKIP() << path << " is not here";
  const auto folder = arrays::read_corpus_folder(path);
  ASSERT_TRUE(folder) << folder.error().message();
  expect_program(*folder, folder->program_path);
  // The same with groups written as a mesh.
  const std::string mesh = path + "/program_mesh.hlo";
  if (std::filesystem::exists(mesh)) expect_program(*folder, mesh);
}

INSTANTIATE_TEST_SUITE_P(All, Program, testing::ValuesIn(program_names()),
                         [](const auto& p) { return test_name(p.param); });

}  // namespace
}  // namespace hloom
