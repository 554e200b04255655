// Values that are made again where they are read late, so that they need not be kept.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace hloom::buffers {

/// Looks for a value that is kept over the peak of the arena and is cheap to make again (broadcasts, iotas, conversions,
/// chains of simple elementwise operations, of arguments that are small or kept anyway), and makes it once more behind
/// the peak for those who read it there. Without need a few values are tried; each must lower the arena by a part in
/// 256, and all together may add a part in 32 to the work of a run, counted in bytes moved and flops. While a plan takes
/// more than `limit_bytes` in all (0: no limit), more are, at any cost. What does not lower the arena is taken back.
/// Cost: a plan for each value that is tried, at most 16 and 3 in vain in a row, fewer of large programs,
/// or 48 above the limit.
/// Needs: as order_readers(); a module that is not scheduled, else nothing is done.
void recompute_cheap_values(hlo::Module&, std::int64_t limit_bytes);

}  // namespace hloom::buffers
