// Which instructions run together as one function.
#pragma once

#include "hlo/module.h"

namespace hloom::fusion {

/// Numbers the regions of a scheduled module after fuse(): consecutive small instructions of a computation, loops and
/// conditionals of small ones included, get the same decisions["region"]. A region becomes one kernel, without dispatch
/// between its instructions, so that a loop of small instructions costs what they cost. Small is what touches at most
/// kRegionBytes; a region holds at most kRegionInstructions, since the time to generate code grows faster than a
/// function does. A loop too long for one region runs step by step, its body in regions. A loop in a region may have larger
/// kernels in branches that are taken once at most (decisions["rare_branch"]), or few among many small instructions, if it is
/// soon over: those get decisions["forks"], and are called for all threads from within the region.
/// Because regions follow the schedule, they never keep it or the buffers from anything.
void mark_regions(hlo::Module&);

inline constexpr std::int64_t kRegionBytes = 64 * 1024;
inline constexpr std::int64_t kRegionInstructions = 400;

}  // namespace hloom::fusion
