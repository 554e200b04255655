// The plan of a program's memory, for people.
#pragma once

#include <string>

#include "buffers/assignment.h"

namespace hloom::compiler {

/// The allocations, and each stretch of the arena with what lies there and when.
std::string buffers_text(const buffers::Assignment&);
/// Bytes by kind, and for each window update, loop carry, branch and result "in place" or "copied, because …".
std::string memory_text(const buffers::Assignment&);

}  // namespace hloom::compiler
