// Layouts where values enter and leave computations.
#pragma once

#include "hlo/module.h"

namespace hloom::buffers {

/// Adds copies that change the layout where an argument of a branch or a called computation, or what a call gives,
/// differs in layout from what is expected there, since parameters and results of these name the caller's values. Where
/// a loop is entered or comes back, insert_copies() does. A loop has the layouts of its body's parameter: what reads its
/// result or its condition's parameter in others reads copies. Needs: unshare_steps().
void match_layouts(hlo::Module&);

}  // namespace hloom::buffers
