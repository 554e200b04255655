#pragma once

#include "compiler/compile.h"

namespace hloom::compiler {

/// Gives calls the scratch of `threads` workers, or of fewer, in the arena, where nothing else lies while they run
/// (runtime::Call::scratch_room), nor what a call uses that may go on beside it: what no call has to have beside the arena need
/// not be there.
/// Needs: program and step_instructions; the module as it was placed. Cost: the calls times the blocks of the arena.
void lend_scratch(Compiled&, int threads);

/// What a run on one thread has beside the arena.
std::int64_t worker_scratch_bytes(const runtime::Program&);

}  // namespace hloom::compiler
