// The cases of tests/conformance: small modules with arguments and expected values (its README tells the files).
#pragma once

#include <string>
#include <vector>

#include "arrays/compare.h"
#include "hlo/literal.h"
#include "hloom/error.h"

namespace hloom::arrays {

struct ConformanceCase {
  std::string opcode, name;
  std::string text;  ///< one HLO module
  std::vector<hlo::Literal> arguments;
  std::vector<hlo::Literal> expected;  ///< leaves of the result, depth first
  std::vector<Tolerance> tolerances;   ///< one a leaf
};

/// The opcodes with cases in the folder, sorted. Errors: NotFound if there are none.
Expected<std::vector<std::string>> conformance_opcodes(const std::string& folder);
/// The cases of one opcode. Errors: InvalidArgument, DataLoss, NotFound, naming file and case.
Expected<std::vector<ConformanceCase>> read_conformance(const std::string& folder, const std::string& opcode);

}  // namespace hloom::arrays
