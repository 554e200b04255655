#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// For copies from another memory space that are to go on beside other work (decisions["beside"], as expand_async notes
/// them). A copied window of an array is fetched from there as one step: its slice and its copy become a fusion. In a
/// loop that has other work, what is fetched of arrays that the loop leaves as they are, from where its counter says, is
/// fetched an iteration ahead: the window of the next one while this one works with its own, which the loop carries. The
/// last iteration fetches a window that nobody reads; dynamic-slice keeps it inside the array.
/// A scheduled module keeps its loops. Cost: linear, and a look at the loop for each such copy. No errors.
Expected<Changed> fetch_ahead(hlo::Module&);

}  // namespace hloom::passes
