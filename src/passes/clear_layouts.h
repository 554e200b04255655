#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes all layouts row-major but those that bind: of the entry's parameters and result, of custom calls and bitcasts,
/// and of a copy that changes its operand's. A `copy` stands at each border with the rest. Memory spaces stay. The
/// layouts of a scheduled module were chosen and stay, but that elements are a byte each where nothing binds, and in no
/// tiles. A copy either moves elements or packs them. Cost: linear. No errors.
Expected<Changed> clear_layouts(hlo::Module&);

}  // namespace hloom::passes
