// Values that are made again where they are read late, so that they need not be kept.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace hloom::buffers {

/// While a plan of the module takes more than `limit_bytes` in all: looks for a value that is kept over the peak of the
/// arena and is cheap to make again (broadcasts, iotas, conversions, chains of simple elementwise operations, of
/// arguments that are at hand anyway or small), and makes it once more behind the peak for those who read it there. What
/// does not lower the arena is taken back. Cost: a plan for each value that is tried, at most kMostTries.
/// Needs: as order_readers(); a module that is not scheduled, else nothing is done.
inline constexpr int kMostTries = 48;
void recompute_cheap_values(hlo::Module&, std::int64_t limit_bytes);

}  // namespace hloom::buffers
