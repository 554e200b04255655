// An independent check of a memory plan.
#pragma once

#include <string>
#include <vector>

#include "buffers/assignment.h"

namespace hloom::buffers {

/// Follows the program in the order of execution, through all branches and around all loops until nothing changes, with
/// a model of memory that knows which value lies in which bytes. Says where an instruction reads bytes that hold
/// something else, where values that must share memory do not, where a result would be written over what the same
/// instruction reads, where read-only memory is written, and where results do not end where they belong.
/// Knows nothing of live ranges. `without`: a copy that is taken for not there, so that tests can see it missed.
/// Returns what is wrong; nothing if the plan is good. Cost: for a loop, a few times its body; so for nested ones a
/// few to the power of their depth.
std::vector<std::string> check_assignment(const Assignment&, const hlo::Instruction* without = nullptr);

}  // namespace hloom::buffers
