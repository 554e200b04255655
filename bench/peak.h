// What the processor can do at most.
#pragma once

namespace hloom::bench {

/// Multiplications and additions of floats a second, on one thread, with all of its vectors; the best of some short runs.
double peak_flops();

}  // namespace hloom::bench
