// Which stage of the compiler changes what a program gives.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// A module after a stage: the stage's name, and the module's text.
using StageText = std::pair<std::string, std::string>;

struct Bisection {
  std::string stage;    ///< after which the results part; empty: they do not
  std::string message;  ///< device where there are several, result, element, both values
  std::int64_t stages = 0;  ///< that were compared
};

/// The first of the modules that the interpreter gives other results for than for `module`. Results that depend on
/// functions or on the order of sums are compared to the bit too: no stage may change them for the interpreter. `arguments` by device,
/// leaves of the parameters.
/// Errors: those of reading the texts and of interpreting.
Expected<Bisection> bisect(const hlo::Module&, std::span<const StageText>, std::span<const std::vector<hlo::Literal>> arguments);

/// Compiles the module and bisects all its stages: each pass that changed something, fusions, buffers, then, as the
/// stage "kernels and code", what the compiled program gives where that must be exact. Errors: as above, and those of
/// compile().
Expected<Bisection> bisect_passes(const hlo::Module&, std::span<const std::vector<hlo::Literal>> arguments, const Options& = {});

}  // namespace hloom::compiler
