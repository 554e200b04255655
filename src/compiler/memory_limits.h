// What a user demands of a program's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "buffers/assignment.h"

namespace hloom::compiler {

/// What a file says that a program's memory may be (memory_budget.h).
struct MemoryBudget {
  std::int64_t peak_bytes = -1;       ///< parameters, results, constants and arena together; -1: any
  std::int64_t temp_bytes = -1;       ///< the arena; -1: any
  std::vector<std::string> in_place;  ///< instructions whose updates, all of them, must be in place
};

struct MemoryDemands {
  /// Updates that must be in place: names of instructions, as the memory stage has them. Present and empty: all.
  std::optional<std::vector<std::string>> in_place;
  /// Most bytes of parameters, results, constants and arena together; 0: what the control group of the process may
  /// have, for a program that is to run.
  std::int64_t limit_bytes = 0;
  /// What the arena may take beyond the smallest so that independent steps need not wait for each other's memory.
  std::int64_t concurrency_bytes = 0;
  MemoryBudget budget;
};

/// Errors: FailedPrecondition with the name, the bytes and the reason of each update that is copied though it must not
///         be; InvalidArgument if a name has no update; ResourceExhausted if a run takes more than the limit or
///         budget, with the largest owners of the arena's peak.
Expected<> check_demands(const buffers::Assignment&, const MemoryDemands&);

/// The largest owners of the arena's peak, a line each that starts with a line break: bytes, names and source.
std::string arena_owners(const buffers::Assignment&);

}  // namespace hloom::compiler
