// Sorts of which a few elements of each line are used.
#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Puts a sort that is read by slices alone, of equally many first or last elements of all lines, into one fusion with them, so that no more are
/// sorted out than are used, and results that nobody reads are not written.
Expected<Changed> shorten_sorts(hlo::Module&);

}  // namespace hloom::passes
