// The plan of a program's memory, for people and for other programs.
#pragma once

#include <string>

#include "compiler/compile.h"

namespace hloom::compiler {

/// The allocations, and each stretch of the arena with what lies there and when.
std::string buffers_text(const buffers::Assignment&);
/// Bytes by kind, the arena's peak and who owns it, what is in use over the schedule, and for each window update,
/// scatter, concatenate, loop carry, conditional result, donated parameter and result "in place" or "copied, N bytes a
/// step, because …".
std::string memory_text(const Compiled&);

/// The same as JSON: {"allocations": […], "arena": [{"offset", "bytes", "live": [[begin, end], …], "values"}, …]}.
std::string buffers_json(const buffers::Assignment&);
/// {"module", "parameter_bytes", "result_bytes", "constant_bytes", "arena_bytes", "scratch_bytes" of one worker beside
/// the arena, "lower_bound_bytes", "gap_bytes", "lent_bytes", "independent_pairs", "pairs_kept_apart",
/// "peak": {"arena_bytes", "at", "owners": [{"block", "bytes", "values", "source"}, …]}, "timeline": [{"at", "point",
/// "arena_bytes"}, …], "updates": [{"at", "kind", "leaf", "bytes", "loops_around", "in_place", "reason", "source"}, …]}. "source" is FILE:LINE, or empty; "block" a place in
/// buffers' "arena".
std::string memory_json(const Compiled&);

/// The same as an HTML file that needs nothing else: the arena over the schedule as a picture, the peak and its owners,
/// and for each update whether it is in place.
std::string memory_html(const Compiled&);

}  // namespace hloom::compiler
