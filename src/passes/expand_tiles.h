#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Drops tiles from layouts: they say where elements lie, not what they are. Only a bitcast tells them, which becomes the reshapes,
/// transposes, pads and slices that its tiles mean. The layouts of the entry, of custom calls, and of bitcasts between elements of different sizes stay.
/// Cost: linear. No errors.
Expected<Changed> expand_tiles(hlo::Module&);

}  // namespace hloom::passes
