// The plan of a program's memory, for people and for other programs.
#pragma once

#include <string>

#include "buffers/assignment.h"

namespace hloom::compiler {

/// The allocations, and each stretch of the arena with what lies there and when.
std::string buffers_text(const buffers::Assignment&);
/// Bytes by kind, the arena's peak and who owns it, and for each window update, loop carry, branch and result
/// "in place" or "copied, because …".
std::string memory_text(const buffers::Assignment&);

/// The same as JSON: {"allocations": […], "arena": [{"offset", "bytes", "live": [[begin, end], …], "values"}, …]}.
std::string buffers_json(const buffers::Assignment&);
/// {"parameter_bytes", "result_bytes", "constant_bytes", "arena_bytes", "peak": {"arena_bytes", "at", "owners": [{"bytes",
/// "values"}, …]}, "timeline": [{"at", "arena_bytes"}, …], "updates": [{"at", "kind", "leaf", "bytes", "in_place",
/// "reason"}, …]}.
std::string memory_json(const buffers::Assignment&);

}  // namespace hloom::compiler
