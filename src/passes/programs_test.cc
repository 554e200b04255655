// The law of laws_test.cc on real programs: those of tests/programs always, the whole corpus where it is at hand.
#include <algorithm>
#include <filesystem>

#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "interp/interpret.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> programs;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (arrays::is_corpus_folder(entry.path().string())) programs.push_back(entry.path().string());
  std::ranges::sort(programs);
  return programs;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  std::ranges::replace(name, '-', '_');
  return name;
}

std::unique_ptr<hlo::Module> read(const std::string& path) {
  const auto bytes = arrays::read_file(path);
  if (!bytes) return nullptr;
  return testing::parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

class Program : public ::testing::TestWithParam<std::string> {};

// All programs keep their bits but two. One folds functions of constants, by the bodies of functions/; the interpreter's wider ones may
// differ in the last place, which its eigenvectors then do not forgive. The other has sums over columns so long that they go by blocks.
bool keeps_bits(const std::string& path) { return !path.ends_with("r25-evosax") && !path.ends_with("r02-resnet18-train"); }

TEST_P(Program, KeepsItsValues) {
  const auto folder = arrays::read_corpus_folder(GetParam());
  ASSERT_TRUE(folder) << folder.error().message();
  const auto before = read(GetParam() + "/program.hlo"), after = read(GetParam() + "/program.hlo");
  ASSERT_TRUE(before && after);
  const auto changed = run_standard(*after, testing::checking());
  ASSERT_TRUE(changed) << changed.error().message();
  if (!after->config().is_scheduled) {  // the others keep what they came with
    const auto again = run_to_fixed_point(standard(), *after, 1, testing::checking());
    ASSERT_TRUE(again && *again == Changed::No) << "a second run found something";
  }
  const interp::Options options{.replicas = folder->num_replicas, .partitions = folder->num_partitions};
  const auto want = interp::interpret_devices(*before, folder->inputs, options);
  if (!want && want.error().code() == Code::Unimplemented) GTEST_SKIP() << want.error().message();
  const auto got = interp::interpret_devices(*after, folder->inputs, options);
  ASSERT_TRUE(want && got);
  std::vector<arrays::Tolerance> tolerances = {arrays::Tolerance::exact()};
  if (!keeps_bits(GetParam())) tolerances = folder->tolerances;
  for (std::size_t device = 0; device < want->size(); ++device) {
    const auto difference = arrays::compare_results({&(*got)[device], 1}, {&(*want)[device], 1}, tolerances);
    EXPECT_FALSE(difference) << "device " << device << ": " << *difference;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, Program, ::testing::ValuesIn(programs_in(HLOOM_SOURCE_DIR "/tests/programs")), name_of);

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Program);
INSTANTIATE_TEST_SUITE_P(Corpus, Program, ::testing::ValuesIn(programs_in(HLOOM_SOURCE_DIR "/../shared/corpus")),
                         name_of);

}  // namespace
}  // namespace hloom::passes
