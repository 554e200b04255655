// What came out: printed, written, compared.
#pragma once

#include <vector>

#include "arrays/compare.h"
#include "cli/options.h"
#include "cli/source.h"
#include "hlo/literal.h"
#include "hloom/error.h"

namespace hloom::cli {

/// Results of each device: leaves, depth first.
using Results = std::vector<std::vector<hlo::Literal>>;

/// Does with the results what the options and the folder ask for: writes them to --output; compares them with
/// --expect or, at check size, with the folder's values; without either prints them, large arrays without elements.
/// Gives the exit status. Errors: those of the files.
Expected<int> deliver(const Options&, const Source&, const Results&);

}  // namespace hloom::cli
