// Which rows are called for before they are read.
#pragma once

#include "kernels/kernel.h"

namespace hloom::kernels {

/// Adds prefetches to loops that go one by one over rows that a loaded index picks from a large array, as a gather does: each iteration
/// finds the row of a later one as that will find it (clamped as it will be, so inside of the array) and prefetches its cache lines, each
/// once. Only for rows of up to a few lines: in longer ones the processor sees by itself what comes next. Behind the last row it is the last
/// one again. Cost: linear.
void prefetch_rows(Kernel&);

}  // namespace hloom::kernels
