// Values that are made again where they are read late, so that they need not be kept.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace hloom::buffers {

/// Looks for a value that is kept over the peak of the
/// arena and is cheap to make again (broadcasts, iotas, conversions, chains of simple elementwise operations, of
/// arguments that are at hand anyway or small), and makes it once more behind the peak for those who read it there; and so
/// on while a plan of the module takes more than `limit_bytes` in all. What does not lower the arena is taken back.
/// Without a limit (0) a few values are tried, and must lower it by a part in 256 each.
/// Cost: a plan for each value that is tried, at most 48, or 16 without a limit.
/// Needs: as order_readers(); a module that is not scheduled, else nothing is done.
void recompute_cheap_values(hlo::Module&, std::int64_t limit_bytes);

}  // namespace hloom::buffers
