// A folder with a real program: text, inputs, expected values, tolerances (tests/programs and the corpus).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/compare.h"
#include "hlo/literal.h"
#include "hloom/error.h"

namespace hloom::arrays {

struct CorpusFolder {
  std::string what;          ///< what the program computes, one sentence
  std::string program_path;  ///< HLO text
  std::int64_t num_replicas = 1, num_partitions = 1;
  std::vector<std::string> custom_calls;  ///< targets that the program calls
  std::vector<std::vector<hlo::Literal>> inputs;    ///< by device (replica·P + partition), by parameter
  std::vector<std::vector<hlo::Literal>> expected;  ///< by device; leaves of the result, depth first
  std::vector<Tolerance> tolerances;                ///< one a leaf
};

/// Whether the path is a folder with program.hlo and meta.json.
bool is_corpus_folder(const std::string& path);
/// Reads the folder at check size. Errors: NotFound, InvalidArgument, DataLoss, naming the file.
Expected<CorpusFolder> read_corpus_folder(const std::string& path);

}  // namespace hloom::arrays
