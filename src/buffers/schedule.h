// The order of execution.
#pragma once

#include "hlo/module.h"

namespace hloom::buffers {

/// Orders the instructions of each computation that runs as steps so that the most bytes alive at a time become few, by
/// the count of schedule_model.h: the best of the present order and some that orders.h makes, improved by
/// improve_order(); the present one among equals. A module that is scheduled keeps its order. Marks the module as
/// scheduled.
/// Needs: a module that unshare_steps() has seen. Cost: n log n, and a bounded search.
void schedule(hlo::Module&);

/// The most bytes beside memory that is there anyway that `c` needs at a time in its present order, as schedule() counts
/// them.
std::int64_t peak_bytes(const hlo::Computation& c);

}  // namespace hloom::buffers
