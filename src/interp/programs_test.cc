// Real programs give their expected values: those of tests/programs always, the whole corpus where it is at hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "interp/interpret.h"
#include "library/lapack_library.h"
#include "text/parse.h"

namespace hloom::interp {
namespace {

std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> programs;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (arrays::is_corpus_folder(entry.path().string())) programs.push_back(entry.path().string());
  std::sort(programs.begin(), programs.end());
  return programs;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// A hloom that was built without LAPACK refuses these by name.
bool lacks_lapack(const arrays::CorpusFolder& folder) {
  return !library::want_lapack() && std::any_of(folder.custom_calls.begin(), folder.custom_calls.end(),
                                                [](const std::string& target) { return target.starts_with("lapack_"); });
}

void expect_values(const std::string& path, const std::string& program) {
  const auto folder = arrays::read_corpus_folder(path);
  ASSERT_TRUE(folder) << folder.error().message();
  if (lacks_lapack(*folder)) GTEST_SKIP() << "calls LAPACK";
  const auto bytes = arrays::read_file(path + "/" + program);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const auto module =
      text::parse_module({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, {.file_name = program});
  ASSERT_TRUE(module) << module.error().message();
  const Options options{.replicas = folder->num_replicas, .partitions = folder->num_partitions};
  const auto results = interpret_devices(**module, folder->inputs, options);
  ASSERT_TRUE(results) << results.error().message();
  for (std::size_t k = 0; k < results->size(); ++k)
    EXPECT_EQ(arrays::compare_results({&(*results)[k], 1}, folder->expected[k], folder->tolerances), std::nullopt)
        << "device " << k;
}

class Program : public testing::TestWithParam<std::string> {};

TEST_P(Program, GivesItsExpectedValues) { expect_values(GetParam(), "program.hlo"); }

// Programs for several devices whose text has another form with replica groups as meshes.
class MeshProgram : public testing::TestWithParam<std::string> {};

TEST_P(MeshProgram, GivesItsExpectedValues) { expect_values(GetParam(), "program_mesh.hlo"); }

std::vector<std::string> mesh_programs_in(const std::string& folder) {
  std::vector<std::string> programs = programs_in(folder);
  std::erase_if(programs, [](const std::string& p) { return !std::filesystem::exists(p + "/program_mesh.hlo"); });
  return programs;
}

INSTANTIATE_TEST_SUITE_P(Small, Program, testing::ValuesIn(programs_in(HLOOM_SOURCE_DIR "/tests/programs")), name_of);

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Program);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MeshProgram);
INSTANTIATE_TEST_SUITE_P(Corpus, Program, testing::ValuesIn(programs_in(HLOOM_SOURCE_DIR "/../shared/corpus")),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Corpus, MeshProgram, testing::ValuesIn(mesh_programs_in(HLOOM_SOURCE_DIR "/../shared/corpus")),
                         name_of);

TEST(Corpus, IsAtHand) {
  if (programs_in(HLOOM_SOURCE_DIR "/../shared/corpus").empty()) GTEST_SKIP() << "../shared/corpus is not here";
}

}  // namespace
}  // namespace hloom::interp
