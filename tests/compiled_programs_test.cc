// Real programs give their expected values when compiled: in regions and step by step, on one thread and on two, with
// the same bits each time. Those of tests/programs always, more of the corpus where it is at hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "arrays/compare.h"
#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"

namespace hloom {
namespace {

const std::string kPrograms = HLOOM_SOURCE_DIR "/tests/programs", kCorpus = HLOOM_SOURCE_DIR "/../shared/corpus";

// Of the corpus, what has to run compiled.
constexpr const char* kCompiled[] = {"r01-mlp-adam",
                                     "r05-gpt-decode-step",
                                     "r06-gpt-greedy-loop",
                                     "r09-selective-scan",
                                     "r14-graph-network",
                                     "r17-diffrax-lorenz",
                                     "r17b-diffrax-stiff",
                                     "r23-gp-tinygp",
                                     "r25-evosax",
                                     "r26-optimistix",
                                     "r27b-gmres",
                                     "r29-shallow-water-roll",
                                     "r29b-shallow-water-slices",
                                     "r30-lattice-boltzmann",
                                     "r31-nbody-leapfrog",
                                     "r31b-nbody-gradient",
                                     "r33-hidden-markov",
                                     "r35-kmeans",
                                     "r35b-knn"};

std::vector<std::string> programs() {
  std::vector<std::string> names(std::begin(kCompiled), std::end(kCompiled));
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(kPrograms, none))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string folder_of(const std::string& name) {
  const std::string own = kPrograms + "/" + name;
  return arrays::is_corpus_folder(own) ? own : kCorpus + "/" + name;
}

std::vector<hlo::Literal> leaves_of(const std::vector<hlo::Literal>& values) {
  std::vector<hlo::Literal> leaves;
  for (const hlo::Literal& value : values)
    for (const hlo::Literal* leaf : hlo::leaves(value)) leaves.push_back(*leaf);
  return leaves;
}

class Program : public testing::TestWithParam<std::string> {};

TEST_P(Program, GivesItsExpectedValues) {
  const std::string path = folder_of(GetParam());
  if (!arrays::is_corpus_folder(path)) GTEST_SKIP() << path << " is not here";
  const auto folder = arrays::read_corpus_folder(path);
  ASSERT_TRUE(folder) << folder.error().message();
  const auto bytes = arrays::read_file(folder->program_path);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());

  std::vector<hlo::Literal> first;
  for (const bool regions : {true, false}) {
    auto module = compiler::read_program(text, {.file_name = folder->program_path});
    ASSERT_TRUE(module) << module.error().message();
    compiler::Options options;
    options.regions = regions;
    options.threads = 2;
    auto compiled = compiler::compile(std::move(*module), options);
    ASSERT_TRUE(compiled) << compiled.error().message();
    const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled->module),
                             results = compiler::result_leaves(*compiled->module);
    const auto executor = runtime::Executor::create(std::move(compiled->program));
    ASSERT_TRUE(executor) << executor.error().message();
    for (const int threads : {1, 2}) {
      runtime::ThreadPool pool(threads);
      const auto values =
          compiler::execute_literals(**executor, parameters, results, leaves_of(folder->inputs[0]), pool);
      ASSERT_TRUE(values) << values.error().message();
      EXPECT_EQ(arrays::compare_results(*values, folder->expected[0], folder->tolerances), std::nullopt)
          << (regions ? "in regions" : "without regions") << " on " << threads << " threads";
      if (first.empty()) first = *values;
      const arrays::Tolerance same = arrays::Tolerance::exact();
      EXPECT_EQ(arrays::compare_results(*values, first, {&same, 1}), std::nullopt)
          << "other values " << (regions ? "in regions" : "without regions") << " on " << threads << " threads";
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Program, testing::ValuesIn(programs()), name_of);

}  // namespace
}  // namespace hloom
