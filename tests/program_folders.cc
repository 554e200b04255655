#include "program_folders.h"

#include <algorithm>
#include <filesystem>

#include "arrays/corpus_folder.h"

namespace hloom {
namespace {

const std::string kPrograms = HLOOM_SOURCE_DIR "/tests/programs", kCorpus = HLOOM_SOURCE_DIR "/../shared/corpus";

}  // namespace

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const std::string& folder : {kPrograms, kCorpus}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none))
      if (arrays::is_corpus_folder(entry.path().string())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string program_folder(const std::string& name) {
  const std::string own = kPrograms + "/" + name;
  return arrays::is_corpus_folder(own) ? own : kCorpus + "/" + name;
}

std::vector<hlo::Literal> leaves_of(const std::vector<hlo::Literal>& values) {
  std::vector<hlo::Literal> leaves;
  for (const hlo::Literal& value : values)
    for (const hlo::Literal* leaf : hlo::leaves(value)) leaves.push_back(*leaf);
  return leaves;
}

std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace hloom
