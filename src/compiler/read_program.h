// A program in whatever form it comes, as a module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

struct ReadOptions {
  std::string_view file_name = "<text>";  ///< what messages call it
  std::string module = {};                ///< of several, by name or number from 0; empty: the only one
  bool fill_elided = false;
  std::int64_t replicas = 0, partitions = 0;  ///< 0: as the program says
};

/// Reads HLO text, verified.
/// Errors: InvalidArgument, with places in the text; NotFound if there is no such module; Unimplemented for other
///         forms, named.
Expected<std::unique_ptr<hlo::Module>> read_program(std::string_view program, const ReadOptions& = {});

}  // namespace hloom::compiler
