// What docs/ shows of the program's output is what the program prints. A block
//
//     ```console
//     $ hloom show examples/cache.hlo --stage=buffers
//     …
//     ```
//
// is run from the root of the source, and compared; a line that is only "…" stands for any lines. With
// HLOOM_WRITE_DOCS=1 the blocks that have no such line are written anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace hloom {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Standard output of the command, whose "hloom" is the one that was built.
std::string output_of(const std::string& words) {
  const std::string command = "cd '" HLOOM_SOURCE_DIR "' && hloom() { '" HLOOM_PROGRAM "' \"$@\"; } && " + words + " 2>/dev/null";
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  for (char buffer[4096]; const std::size_t n = std::fread(buffer, 1, sizeof(buffer), pipe);) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << words;
  return text;
}

constexpr const char* kAnyLines = "…";

// Whether `got` is `want`, whose "…" stand for any number of lines.
bool matches(std::span<const std::string> want, std::span<const std::string> got) {
  if (want.empty()) return got.empty();
  if (want[0] != kAnyLines) return !got.empty() && want[0] == got[0] && matches(want.subspan(1), got.subspan(1));
  for (std::size_t skipped = 0; skipped <= got.size(); ++skipped)
    if (matches(want.subspan(1), got.subspan(skipped))) return true;
  return false;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The document with its blocks as they should be; `blocks` counts those that were compared.
Lines checked(const Lines& document, bool write, int& blocks) {
  Lines result;
  for (std::size_t at = 0; at < document.size(); ++at) {
    result.push_back(document[at]);
    if (document[at] != "```console" || at + 1 >= document.size() || !document[at + 1].starts_with("$ hloom ")) continue;
    const std::string command = document[++at].substr(2);
    Lines shown;
    while (++at < document.size() && document[at] != "```") shown.push_back(document[at]);
    const Lines got = lines_of(output_of(command));
    ++blocks;
    const bool whole = std::find(shown.begin(), shown.end(), kAnyLines) == shown.end();
    if (!(write && whole)) {
      EXPECT_TRUE(matches(shown, got)) << command << " prints\n" << joined(got) << "and the document shows\n" << joined(shown);
    }
    result.push_back("$ " + command);
    const Lines& kept = write && whole ? got : shown;
    result.insert(result.end(), kept.begin(), kept.end());
    result.emplace_back("```");
  }
  return result;
}

TEST(Documents, ShowWhatTheProgramPrints) {
  const std::string path = HLOOM_SOURCE_DIR "/docs/memory.md";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const bool write = std::getenv("HLOOM_WRITE_DOCS") != nullptr;
  int blocks = 0;
  const Lines result = checked(lines_of(text.str()), write, blocks);
  EXPECT_GE(blocks, 7);
  if (write) std::ofstream(path) << joined(result);
}

TEST(Documents, AnyLinesMatchAnyLines) {
  const Lines got = {"a", "b", "c"};
  EXPECT_TRUE(matches(Lines{"a", "b", "c"}, got));
  EXPECT_TRUE(matches(Lines{"a", kAnyLines, "c"}, got));
  EXPECT_TRUE(matches(Lines{kAnyLines}, got));
  EXPECT_FALSE(matches(Lines{"a", "c"}, got));
  EXPECT_FALSE(matches(Lines{"a", kAnyLines, "b"}, got));
}

}  // namespace
}  // namespace hloom
