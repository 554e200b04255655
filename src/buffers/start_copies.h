// Copies between memory spaces that go on beside other work.
#pragma once

#include "hlo/module.h"

namespace hloom::buffers {

/// Makes a copy-start and a copy-done of each large copy from one memory space to another that has work to go on beside,
/// and an async-start and -done of each window that is copied so (a fusion with decisions["beside"], passes/fetch_ahead): a
/// fetch into the arena starts early enough to be done when it is wanted, but no earlier, since its memory is taken from
/// there on; all are awaited where somebody needs them, or may write over what they read.
/// Needs: a module that schedule() has seen. Cost: a pass over the computation for each such copy.
void start_copies(hlo::Module&);

/// A large copy between memory spaces that moves bytes as they are, or a window that is copied so.
bool can_be_started(const hlo::Instruction&);

}  // namespace hloom::buffers
