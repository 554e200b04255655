#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Chooses the layout of every array that no one else did, so that the fewest bytes are moved to change layouts, those
/// in loops counted for their iterations. The layouts of the entry, of custom calls, of bitcasts, of copies that ask
/// for one, and of whatever takes whole arrays bind; while loops and conditionals carry any. A transpose whose operand
/// lies as its result wants becomes a bitcast. Copies that change a layout stand where arrays that go together lie
/// differently; decisions["layout"] says why an array lies otherwise than row-major. Does nothing to a scheduled
/// module, or if a computation is run from two places. Cost: near linear. No errors.
Expected<Changed> assign_layouts(hlo::Module&);

}  // namespace hloom::passes
