// Arrays that are made of nothing, for each who writes over them.
#pragma once

#include "hlo/module.h"

namespace hloom::buffers {

/// A fusion that reads no array, such as zeros or an iota, is made again for each instruction that writes over it or
/// carries it into a loop, but the first: making it costs less than copying it, and it lives only as long as needed.
/// A scheduled module is left as it is. Needs: a module after fusion that unshare_steps() has seen. Cost: linear.
void split_fills(hlo::Module&);

}  // namespace hloom::buffers
