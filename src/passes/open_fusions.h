#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Opens those fusions of an optimized dump that no kernel does as one, or only by computing much again: what they call
/// stands in their place, so that the fusion stage sees it. A fusion stays if its loops are those of its root, or of
/// reduces that are read at their own place; so do the elementwise fusions that other compilers make most of.
/// Cost: linear. No errors.
Expected<Changed> open_fusions(hlo::Module&);

}  // namespace hloom::passes
