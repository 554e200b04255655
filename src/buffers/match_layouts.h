// Layouts where values enter and leave computations.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::buffers {

/// Adds copies that change the layout where an argument of a branch or a called computation, or what a call gives,
/// differs in layout from what is expected there, since parameters and results of these name the caller's values. Where
/// a loop is entered or comes back, insert_copies() does. Needs: unshare_steps(). Errors: InvalidArgument, naming the
/// loop, if the layouts of its parameters and of its result differ.
Expected<> match_layouts(hlo::Module&);

}  // namespace hloom::buffers
