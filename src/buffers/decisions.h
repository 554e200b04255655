// What is to be said of updates beside the copies between them.
#pragma once

#include <vector>

#include "buffers/insert_copies.h"
#include "hlo/module.h"

namespace hloom::buffers {

/// What writes leaf `leaf` of an in-place instruction's result: a window update, a scatter, or another.
InPlaceDecision::Kind update_kind(const hlo::Instruction&, std::int64_t leaf);

/// Appends what asks for no shared memory, and so for no copy either: window updates and scatters that are planned out of
/// place, with the plan's reason; concatenates, with the pieces that they copy; donations that were given up.
/// Needs: a module that insert_copies() has seen.
void append_undone(const hlo::Module&, std::vector<InPlaceDecision>&);

}  // namespace hloom::buffers
