// The order of execution.
#pragma once

#include "hlo/module.h"

namespace hloom::buffers {

/// Orders the instructions of each computation that runs as steps so that the most bytes alive at a time become few:
/// the best of the present order, a greedy list schedule and a depth first order, by a count of bytes; the present one
/// among equals. A module that is scheduled keeps its order. Marks the module as scheduled.
/// Needs: a module that unshare_steps() has seen. Cost: n log n.
void schedule(hlo::Module&);

/// The most bytes of values made in `c` that are alive at a time in its present order, as schedule() counts them.
std::int64_t peak_bytes(const hlo::Computation& c);

}  // namespace hloom::buffers
