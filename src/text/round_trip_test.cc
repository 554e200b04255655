// The laws of the text: parse(print(m)) equals m, print(parse(print(m))) is print(m), for every program at hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Files below `folder` whose names end in `suffix`, in order.
std::vector<fs::path> files_below(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

void expect_round_trip(const hlo::Module& module, const PrintOptions& print_options, bool verify = true) {
  const std::string text = print(module, print_options);
  const auto again = parse_module(text, {.verify = verify});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(equal(module, **again)) << text;
  EXPECT_EQ(print(**again, print_options), text);
}

void expect_round_trips(const fs::path& file) {
  SCOPED_TRACE(file.string());
  const std::string text = read_file(file);
  const std::string name = file.string();
  // Programs before partitioning name participants that their header does not count.
  const bool verify = file.filename() != "global.hlo" && file.filename() != "every-attribute.cases.hlo";
  const auto modules = parse_modules(text, {.file_name = name, .verify = verify});
  ASSERT_TRUE(modules) << modules.error().message();
  for (const auto& module : *modules) {
    expect_round_trip(*module, {}, verify);
    expect_round_trip(*module, {.percent = false, .operand_shapes = true}, verify);
  }
}

fs::path source() { return HLOOM_SOURCE_DIR; }

TEST(RoundTrip, ConformanceCases) {
  const auto files = files_below(source() / "tests/conformance", ".cases.hlo");
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) expect_round_trips(file);
}

TEST(RoundTrip, Programs) {
  for (const fs::path& file : files_below(source() / "tests/programs", ".hlo")) expect_round_trips(file);
  for (const fs::path& file : files_below(source() / "src/text/golden", ".hlo")) expect_round_trips(file);
}

TEST(RoundTrip, SharedCorpus) {
  const fs::path corpus = source() / "../shared/corpus";
  if (!fs::exists(corpus)) GTEST_SKIP() << corpus << " is not here";
  for (const fs::path& file : files_below(corpus, ".hlo")) expect_round_trips(file);
}

}  // namespace
}  // namespace hloom::text
