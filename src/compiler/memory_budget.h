// What a program's memory may be, kept in a file beside its source; and what changed since a report.
#pragma once

#include <string>
#include <string_view>

#include "buffers/assignment.h"
#include "compiler/compile.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// A budget file is JSON: {"peak_bytes": N, "temp_bytes": N, "in_place": ["NAME", …]}, each part optional.
/// Errors: InvalidArgument, naming what is wrong. `name` is the file's, for messages.
Expected<MemoryBudget> parse_budget(std::string_view text, std::string_view name);

/// The budget that the plan just meets, with the names of all updates in place, as a file.
std::string budget_of(const buffers::Assignment&);

/// How the plan differs from a report that memory_json() wrote: bytes by kind; what owns the peak now and did not, or
/// owned it and does not, or has another size, by the name of its first value; updates that became copies or stopped
/// being any. `name` is the file's. Errors: InvalidArgument if the text is no report.
Expected<std::string> memory_changes(std::string_view report, std::string_view name, const Compiled&);

}  // namespace hloom::compiler
